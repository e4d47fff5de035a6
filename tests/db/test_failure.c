#include "db/failure.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

Test(failure, gives_each_cause_its_status_and_a_remedy)
{
    static const struct {
        int         os_error;
        rssm_status status;
        const char *word;
    } CASES[] = {
        {ENOSPC, RSSM_E_IO, "full"},
        {EDQUOT, RSSM_E_IO, "quota"},
        {EROFS, RSSM_E_READ_ONLY, "read-only"},
        {EACCES, RSSM_E_PERMISSION, "permitted"},
        {EPERM, RSSM_E_PERMISSION, "permitted"},
        {ENOENT, RSSM_E_NOT_FOUND, "does not exist"},
        {EIO, RSSM_E_IO, "error"},
        {ENOMEM, RSSM_E_NO_MEMORY, "memory"},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        rssm_diag diag = {0};
        cr_expect_eq(rssm_failure_errno(CASES[i].os_error, "/a/b", "writing", &diag), CASES[i].status);
        cr_expect(strstr(diag.text, CASES[i].word) != NULL && strstr(diag.text, "'/a/b'") != NULL, "%s", diag.text);
    }
}
