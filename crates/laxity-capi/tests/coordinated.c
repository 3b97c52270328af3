/* A process whose upcalls take turns with those of others. It does what it reads, a line each, and says what came of that:
 *
 *     more NAME TENTHS   an upcall that has so many tenths of the processor, called three times
 *     fed                what the calls read that a descriptor releases, and how many those are
 *     gone               the number of a process that has gone, once there is one
 *     settle PROCESS     it is settled
 *     spin               an upcall whose handler does not come back before its executor has lost its rank
 *
 * Its arguments are the processor, and "fifo" or "fair".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include <rts.h>

static const char *said(int error) {
    return error == 0 ? "yes" : laxity_message();
}

/* The third call is the last. */
static void handle(rts_funargs *arg) {
    uint32_t *calls = (uint32_t *)arg->pcb;
    arg->smstr->pdu_count = arg->smstr->pdu_goal;
    if (arg->smstr->pdu_count == arg->smstr->batch && ++*calls == 3)
        arg->smstr->asks = RTS_ASKS_SUSPEND;
}

static void more(const char *name, uint32_t tenths) {
    static uint32_t calls[RTS_MOST];
    rts_attributes attributes = RTS_ATTRIBUTES_INIT;
    attributes.name = name;
    attributes.period_ns = 10000000;
    attributes.pdu_ns = 100000;
    attributes.batch = 10 * tenths;
    attributes.quantum = 2;
    int rtu = -1;
    uint32_t *own = NULL;
    for (int place = 0; place < RTS_MOST && own == NULL; place++)
        own = calls[place] == 0 ? &calls[place] : NULL;
    int error = rts_creat(&attributes, handle, own, &rtu);
    const char *why = said(error);
    if (error == 0) {
        rts_set wanted = { { 0, 0 } };
        wanted.bits[rtu / 64] = UINT64_C(1) << (rtu % 64);
        uint64_t bound = 0;
        if (rts_bound(rtu, &bound) != 0 || bound > attributes.period_ns || rts_run(rtu) != 0 || rts_sleep(&wanted, NULL, 0) != 0 || *own != 3)
            why = laxity_message();
    }
    printf("%s %s\n", error == EBUSY ? "EBUSY" : strerror(error), why);
}

struct reads {
    int fd;
    char read[8];
    size_t count;
    unsigned calls;
};

/* A byte a call, and the end of them is the last. */
static void take(rts_funargs *arg) {
    struct reads *own = (struct reads *)arg->pcb;
    arg->smstr->pdu_count = arg->smstr->pdu_goal;
    own->calls++;
    if (read(own->fd, &own->read[own->count], 1) == 1 && own->count + 1 < sizeof(own->read))
        own->count++;
    else
        arg->smstr->asks = RTS_ASKS_SUSPEND;
}

static void fed(void) {
    struct reads own = { -1, { 0 }, 0, 0 };
    int ends[2] = { -1, -1 }, rtu = -1;
    int error = pipe(ends) == 0 ? 0 : errno;
    rts_attributes attributes = RTS_ATTRIBUTES_INIT;
    attributes.name = "fed";
    attributes.period_ns = 10000000;
    attributes.pdu_ns = 100000;
    attributes.flags = RTS_DESCRIPTOR;
    attributes.fd = own.fd = ends[0];
    if (error == 0)
        error = rts_creat(&attributes, take, &own, &rtu);
    if (error == 0)
        error = rts_run(rtu);
    if (error == 0 && write(ends[1], "abc", 3) != 3)
        error = errno;
    close(ends[1]);
    if (error == 0) {
        rts_set wanted = { { 0, 0 } };
        wanted.bits[rtu / 64] = UINT64_C(1) << (rtu % 64);
        error = rts_sleep(&wanted, NULL, 0);
    }
    if (error == 0)
        error = rts_close(rtu);
    close(ends[0]);
    own.read[own.count] = '\0';
    printf("%s %s %u\n", error == 0 ? "Success" : laxity_message(), own.read, own.calls);
}

static int may_return;

static void spin(rts_funargs *arg) {
    arg->smstr->pdu_count = arg->smstr->pdu_goal;
    while (__atomic_load_n(&may_return, __ATOMIC_SEQ_CST) == 0) {
    }
}

static void lose(void) {
    rts_attributes attributes = RTS_ATTRIBUTES_INIT;
    attributes.period_ns = 10000000;
    attributes.pdu_ns = 100000;
    int rtu = -1, enforced = 1, error = rts_creat(&attributes, spin, NULL, &rtu);
    if (error == 0)
        error = rts_run(rtu);
    while (error == 0 && enforced)
        error = rts_enforced(&enforced);
    __atomic_store_n(&may_return, 1, __ATOMIC_SEQ_CST);
    /* Until the executor, which has lost its seat, sees that. */
    while (error == 0)
        error = rts_run(rtu);
    int closed = rts_close(rtu), asked = rts_enforced(&enforced);
    printf("%s %d %d %d %s\n", error == ECANCELED ? "ECANCELED" : strerror(error), closed, asked, enforced, laxity_message());
}

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    rts_options options = RTS_OPTIONS_INIT;
    options.processor = atoi(arguments[1]);
    options.rank = strcmp(arguments[2], "fifo") == 0 ? RTS_FIFO : RTS_FAIR;
    rts_coordinator coordinator = RTS_COORDINATOR_INIT;
    coordinator.name = "test";
    int error = rts_join(&options, &coordinator);
    printf("%d %s\n", error, said(error));
    fflush(stdout);
    char line[64], name[32];
    while (error == 0 && fgets(line, sizeof(line), stdin) != NULL) {
        unsigned tenths = 0;
        int process = 0;
        if (sscanf(line, "more %31s %u", name, &tenths) == 2) {
            more(name, tenths);
        } else if (strcmp(line, "fed\n") == 0) {
            fed();
        } else if (strcmp(line, "spin\n") == 0) {
            lose();
        } else if (sscanf(line, "settle %d", &process) == 1) {
            int settled = rts_settle(process);
            printf("%d %s\n", settled, said(settled));
        } else {
            int failed = 0;
            while (failed == 0 && process == 0)
                failed = rts_departed(&process);
            printf("%d %d\n", failed, process);
        }
        fflush(stdout);
    }
    return error == 0 && rts_end() == 0 ? 0 : 1;
}
