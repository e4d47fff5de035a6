// The shared library is the runtime archive behind the version script; this file only makes it a target of C.
#include "include/replayssm.h"

_Static_assert(RSSM_OK == 0, "callers test a status against zero");
