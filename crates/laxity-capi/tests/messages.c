/* A message that somebody kept: what nobody said anything after is as it was, and what is overwritten can be read. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "laxity.h"

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, laxity_message());                                   \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

int main(void) {
    laxity_delivery delivery = LAXITY_DELIVERY_INIT;
    laxity_request request = LAXITY_REQUEST_INIT;
    laxity_handle handle;
    char copy[2048];

    const char *kept = laxity_message();
    CHECK(kept[0] == '\0');

    CHECK(laxity_read(0, &delivery) == EBADF);
    CHECK(strstr(kept, "no reservation") != NULL);
    strcpy(copy, kept);

    /* Who has nothing to say leaves it. */
    CHECK(laxity_sleep_until_ns(0) == 0);
    CHECK(laxity_now_ns() > 0);
    CHECK(strcmp(kept, copy) == 0);

    request.service_ns = 1000000;
    request.period_ns = 10000000;
    /* Who has, of whatever length, takes its place: the memory is the same. */
    for (uint32_t times = 0; times < 100; times++) {
        request.enforcer = times % 2 == 0 ? 9 : 4000000000u + times;
        CHECK(laxity_reserve(&request, &handle) == EINVAL);
        CHECK(kept == laxity_message());
        CHECK(strlen(kept) > 0 && strcmp(kept, copy) != 0);
        strcpy(copy, kept);
        CHECK(laxity_sleep_until_ns(UINT64_MAX) == EINVAL);
    }
    return 0;
}
