/* Two media streams of different periods take turns in one real-time thread, and share a counter without a lock.
 *
 *     cc upcalls.c $(pkg-config --cflags --libs laxity) -Wl,-rpath,$(pkg-config --variable=libdir laxity) -o upcalls && ./upcalls
 *
 * With `fair` as its argument the thread is an ordinary one, which takes no right; with `fifo`, which is so without an argument, it is real-time. A processor behind that, as in `./upcalls fifo 1`, and they take turns there with
 * those of other processes, by a coordinator, which is started where there is none: two of this program may run so at once. Exits 0, 1 where it fails, and 4 where it lacks a right.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rts.h>

/* What both handlers have, one after the other. */
static uint64_t packets;

struct session {
    uint32_t frames;      /* that were sent */
    uint32_t most_frames; /* after which it is suspended; 0: never */
};

static void send_packets(struct rts_funargs *arg) {
    struct session *session = (struct session *)arg->pcb;
    struct rts_smstr *call = arg->smstr;
    while (call->pdu_count < call->pdu_goal) {
        packets++;
        call->pdu_count++;
    }
    if (call->pdu_count == call->batch && ++session->frames == session->most_frames)
        call->asks = RTS_ASKS_SUSPEND;
}

static int failed(int error) {
    fprintf(stderr, "%s (%s)\n", laxity_message(), strerror(error));
    return error == EPERM ? 4 : 1;
}

/* What all have done that there are. */
static void tell(void) {
    rts_set there = { { 0, 0 } };
    if (rts_list(&there) != 0)
        return;
    for (int rtu = 0; rtu < RTS_MOST; rtu++) {
        rts_counts counts = RTS_COUNTS_INIT;
        char name[32];
        if ((there.bits[rtu / 64] >> (rtu % 64) & 1) == 0)
            continue;
        if (rts_name(rtu, name, sizeof(name)) == 0 && rts_read(rtu, &counts) == 0)
            printf("%s: %" PRIu64 " calls, %" PRIu64 " PDUs\n", name, counts.calls, counts.pdus);
    }
}

int main(int count, char **arguments) {
    rts_options options = RTS_OPTIONS_INIT;
    if (count > 1 && strcmp(arguments[1], "fair") == 0)
        options.rank = RTS_FAIR;
    rts_coordinator coordinator = RTS_COORDINATOR_INIT;
    if (count > 2)
        options.processor = atoi(arguments[2]);
    int error = count > 2 ? rts_join(&options, &coordinator) : rts_start(&options);
    if (error != 0)
        return failed(error);

    struct session video = { 0, 10 }, audio = { 0, 0 };
    rts_attributes attributes = RTS_ATTRIBUTES_INIT;
    attributes.name = "video";
    attributes.period_ns = 20000000;
    attributes.batch = 16;
    attributes.quantum = 4;
    attributes.pdu_ns = 20000;
    int video_rtu = -1, audio_rtu = -1, greedy_rtu = -1;
    error = rts_creat(&attributes, send_packets, &video, &video_rtu);
    if (error != 0)
        return failed(error);

    attributes.name = "audio";
    attributes.period_ns = 5000000;
    attributes.batch = attributes.quantum = 1;
    error = rts_creat(&attributes, send_packets, &audio, &audio_rtu);
    if (error != 0)
        return failed(error);

    /* More than there is: who would be late is named, and what would fit. */
    attributes.name = "greedy";
    attributes.period_ns = 2000000;
    attributes.pdu_ns = 3000000;
    if (rts_creat(&attributes, send_packets, &audio, &greedy_rtu) != EBUSY)
        return 1;
    printf("refused: %s\n", laxity_message());

    error = rts_run(audio_rtu);
    if (error == 0)
        error = rts_run(video_rtu);
    rts_set wanted = { { UINT64_C(1) << video_rtu, 0 } }, idle = { { 0, 0 } };
    if (error == 0)
        error = rts_sleep(&wanted, &idle, 0);
    if (error == 0)
        error = rts_suspend(audio_rtu);
    if (error != 0)
        return failed(error);
    tell();

    /* What was closed is no upcall any more. */
    if (rts_close(video_rtu) != 0 || rts_close(video_rtu) != EBADF)
        return 1;
    return rts_end() == 0 && idle.bits[0] == wanted.bits[0] ? 0 : 1;
}
