/*
 * Runs spandsp's V.22bis modem as the other end of a connection.
 *
 *     spandsp-peer (call|answer) (1200|2400)
 *
 * Reads blocks of 160 samples (16 bits, the machine's byte order, 8 kHz) from standard input and
 * writes one to standard output for each. Sends the sequence x^15 + x^14 + 1 once its receiver is
 * trained, ones before that, and checks the same sequence in what it receives. At the end of the
 * input it prints to standard error
 *
 *     rate=BPS sent=BITS checked=BITS errors=BITS trained_at=SAMPLES
 *
 * where the rate is 0 and the time is -1 if it never trained.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spandsp/telephony.h>
#include <spandsp/logging.h>
#include <spandsp/complex.h>
#include <spandsp/async.h>
#include <spandsp/power_meter.h>
#include <spandsp/v29rx.h>
#include <spandsp/v22bis.h>

enum { BLOCK = 160, SYNCHRONISED = 48 };

struct peer {
    bool trained;
    long now;
    long trained_at;
    uint32_t sent_history;
    long sent;
    /* The last 15 bits received; those that follow from them are counted until there are enough. */
    uint32_t history;
    int agreed;
    long checked;
    long errors;
};

static int predicted(uint32_t history)
{
    return ((history >> 13) ^ (history >> 14)) & 1;
}

static int get_bit(void *user_data)
{
    struct peer *peer = user_data;
    if (!peer->trained)
        return 1;
    int bit = predicted(peer->sent_history);
    peer->sent_history = (peer->sent_history << 1) | (uint32_t) bit;
    peer->sent++;
    return bit;
}

static void put_bit(void *user_data, int bit)
{
    struct peer *peer = user_data;
    if (bit < 0) {
        if (bit == SIG_STATUS_TRAINING_SUCCEEDED && !peer->trained) {
            peer->trained = true;
            peer->trained_at = peer->now;
        }
        return;
    }
    if (!peer->trained)
        return;
    bool right = bit == predicted(peer->history);
    if (peer->agreed < SYNCHRONISED) {
        /* Zeros follow from zeros too. */
        peer->agreed = right && peer->history != 0 ? peer->agreed + 1 : 0;
        peer->history = ((peer->history << 1) | (uint32_t) bit) & 0x7FFF;
    } else {
        peer->checked++;
        peer->errors += !right;
        peer->history = ((peer->history << 1) | (uint32_t) predicted(peer->history)) & 0x7FFF;
    }
}

int main(int argc, char *argv[])
{
    if (argc != 3 || (strcmp(argv[1], "call") != 0 && strcmp(argv[1], "answer") != 0)) {
        fprintf(stderr, "usage: spandsp-peer (call|answer) (1200|2400)\n");
        return 2;
    }
    struct peer peer = { .trained_at = -1, .sent_history = 0x5A5A };
    v22bis_state_t *modem = v22bis_init(NULL, atoi(argv[2]), V22BIS_GUARD_TONE_NONE,
                                        strcmp(argv[1], "call") == 0, get_bit, &peer, put_bit, &peer);
    if (modem == NULL) {
        fprintf(stderr, "spandsp-peer: no modem for %s bit/s\n", argv[2]);
        return 2;
    }
    int16_t block[BLOCK];
    while (fread(block, sizeof(block), 1, stdin) == 1) {
        peer.now += BLOCK;
        v22bis_rx(modem, block, BLOCK);
        memset(block, 0, sizeof(block));
        v22bis_tx(modem, block, BLOCK);
        if (fwrite(block, sizeof(block), 1, stdout) != 1 || fflush(stdout) != 0)
            return 1;
    }
    fprintf(stderr, "rate=%d sent=%ld checked=%ld errors=%ld trained_at=%ld\n",
            peer.trained ? v22bis_get_current_bit_rate(modem) : 0, peer.sent, peer.checked,
            peer.errors, peer.trained_at);
    v22bis_free(modem);
    return 0;
}
