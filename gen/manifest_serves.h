// The "serves" object of a manifest. Private to manifest.c and manifest_serves.c.
#ifndef RSSM_GEN_MANIFEST_SERVES_H
#define RSSM_GEN_MANIFEST_SERVES_H

#include "base/json.h"
#include "gen/manifest.h"

rssm_serves rssm_serves_everything(void);

// Narrows *serves by the object's keys.
rssm_status rssm_serves_load(rssm_json_value object, rssm_serves *serves, rssm_diag *diag);

#endif
