// base/clock.h: time does not run back, and a sleep lasts, signals or not.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>

#include "base/clock.h"

Test(clock, never_runs_back)
{
    uint64_t last = rssm_now_ns();

    for (int i = 0; i < 10000; i++) {
        const uint64_t now = rssm_now_ns();
        cr_assert_geq(now, last);
        last = now;
    }
}

static atomic_int n_alarms;

static void count_alarm(int signal_number)
{
    (void)signal_number;
    atomic_fetch_add(&n_alarms, 1);
}

Test(clock, signals_do_not_shorten_a_sleep)
{
    struct sigaction       action;
    const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};

    memset(&action, 0, sizeof action);
    action.sa_handler = count_alarm; // no SA_RESTART: system calls are interrupted
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    const uint64_t begin = rssm_now_ns();
    rssm_sleep_ns(40000000);
    const uint64_t end = rssm_now_ns();
    setitimer(ITIMER_REAL, &never, NULL);
    cr_assert_geq(end - begin, 40000000);
    cr_assert_gt(atomic_load(&n_alarms), 0, "the sleep was interrupted");
}
