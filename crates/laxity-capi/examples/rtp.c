/* A sender and a receiver of RTP (RFC 3550), each a process with two sessions of different periods in one real-time thread: a voice (PCMU, 8 kHz), of which a packet is sent
 * every 20 ms, and music (L16, 44.1 kHz), of which four packets are sent every 40 ms with a look after every two. What they hear and say is a tone of 440 Hz.
 *
 *     cc rtp.c $(pkg-config --cflags --libs laxity) -Wl,-rpath,$(pkg-config --variable=libdir laxity) -o rtp
 *     ./rtp receive 127.0.0.1:5004 127.0.0.1:5006 10      ten seconds of voice and music, and tells what came
 *     ./rtp send    127.0.0.1:5004 127.0.0.1:5006 10
 *
 * With `fair` as the last argument the thread is an ordinary one, which takes no right. Exits 0, 1 where it fails, and 4 where it lacks a right.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rts.h>

#define HEADER 12

/* A media format of RFC 3551, and how it is sent. */
struct format {
    const char *name;
    uint8_t payload_type;
    uint32_t rate_hz;
    uint32_t samples; /* in a packet */
    uint32_t period_ms;
    uint32_t batch;
    uint32_t quantum;
    double cosine, sine; /* of the angle that the tone turns by from sample to sample */
};

static const struct format formats[2] = {
    { "voice", 0, 8000, 160, 20, 1, 1, 0.9408807689542255, 0.3387379202452914 },
    { "music", 11, 44100, 441, 40, 4, 2, 0.998035664431685, 0.06264832417874368 },
};

struct session {
    const struct format *format;
    int socket, rtu;
    uint32_t source, goal, packets; /* that are to come or go, and that did */
    uint16_t sequence;
    uint32_t timestamp;
    double tone[2]; /* the next sample, and the one before */
    uint64_t missed, refused;
    uint32_t first, highest, first_timestamp; /* of what came: sequence numbers with their turns */
    int64_t transit;                          /* when the last came, less when it was due, by its clock */
    uint64_t jitter, others;                  /* times 16 */
};

/* The room for a packet, which both sessions use one after the other: it needs no lock. */
static uint8_t room[1500];

static void put16(uint8_t *to, uint32_t value) {
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static void put32(uint8_t *to, uint32_t value) {
    put16(to, value >> 16);
    put16(to + 2, value);
}

static uint32_t get16(const uint8_t *from) {
    return (uint32_t)from[0] << 8 | from[1];
}

static uint32_t get32(const uint8_t *from) {
    return get16(from) << 16 | get16(from + 2);
}

/* A sample as ITU-T G.711 companded it by the mu-law: sign, segment and four bits, inverted. */
static uint8_t mu_law(int sample) {
    unsigned sign = sample < 0 ? 0x80 : 0, segment = 0;
    unsigned biased = (unsigned)(sample < 0 ? -sample : sample) + 132;
    while (segment < 7 && biased >> (segment + 8) != 0)
        segment++;
    return (uint8_t) ~(sign | segment << 4 | (biased >> (segment + 3) & 15));
}

static void send_packet(struct session *session, int begins) {
    const struct format *format = session->format;
    uint8_t *to = room + HEADER;
    for (uint32_t number = 0; number < format->samples; number++) {
        int sample = (int)session->tone[0];
        double next = 2 * format->cosine * session->tone[0] - session->tone[1];
        session->tone[1] = session->tone[0];
        session->tone[0] = next;
        if (format->payload_type == 0) {
            *to++ = mu_law(sample);
        } else {
            put16(to, (uint32_t)sample);
            to += 2;
        }
    }
    room[0] = 2 << 6;
    room[1] = (uint8_t)(format->payload_type | (begins ? 0x80 : 0));
    put16(room + 2, session->sequence);
    put32(room + 4, session->timestamp);
    put32(room + 8, session->source);
    /* A packet that the network does not take is lost, as one on its way is. */
    if (send(session->socket, room, (size_t)(to - room), MSG_DONTWAIT) < 0)
        session->refused++;
    session->sequence++;
    session->timestamp += format->samples;
    session->packets++;
}

static void outgoing(struct rts_funargs *arg) {
    struct session *session = (struct session *)arg->pcb;
    struct rts_smstr *call = arg->smstr;
    int begins = session->packets == 0;
    if (call->pdu_count == 0 && !begins && call->missed > 0) {
        /* The sound went on while nobody sent: the receiver hears silence. */
        session->missed += call->missed;
        session->timestamp += (uint32_t)call->missed * session->format->samples * session->format->batch;
        begins = 1;
    }
    for (; call->pdu_count < call->pdu_goal; call->pdu_count++) {
        send_packet(session, begins);
        begins = 0;
    }
    if (session->packets >= session->goal)
        call->asks = RTS_ASKS_SUSPEND;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* RFC 3550, sections 6.4.1 and A.1. */
static void take_packet(struct session *session, size_t length) {
    const struct format *format = session->format;
    uint32_t sequence = get16(room + 2), timestamp = get32(room + 4), source = get32(room + 8);
    if (length < HEADER || room[0] >> 6 != 2 || (room[1] & 0x7f) != format->payload_type || (session->packets > 0 && source != session->source)) {
        session->others++;
        return;
    }
    uint64_t now = now_ns();
    int64_t clock = (int64_t)(now / 1000000000 * format->rate_hz + now % 1000000000 * format->rate_hz / 1000000000);
    if (session->packets++ == 0) {
        session->source = source;
        session->first = session->highest = sequence;
        session->first_timestamp = session->timestamp = timestamp;
        session->transit = clock;
    }
    int64_t transit = clock - (int64_t)(uint32_t)(timestamp - session->first_timestamp);
    int64_t varied = transit - session->transit;
    session->jitter += (uint64_t)(varied < 0 ? -varied : varied) - (session->jitter + 8) / 16;
    session->transit = transit;
    uint16_t ahead = (uint16_t)(sequence - session->highest);
    /* What is not ahead comes late. */
    if (ahead < 0x8000) {
        session->highest += ahead;
        session->timestamp = timestamp;
    }
}

static uint32_t expected(const struct session *session) {
    return session->packets == 0 ? 0 : session->highest - session->first + 1;
}

static void incoming(struct rts_funargs *arg) {
    struct session *session = (struct session *)arg->pcb;
    struct rts_smstr *call = arg->smstr;
    for (; call->pdu_count < call->pdu_goal; call->pdu_count++) {
        ssize_t length = recv(session->socket, room, sizeof room, MSG_DONTWAIT);
        if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (length < 0)
            session->others++;
        else
            take_packet(session, (size_t)length);
    }
    if (expected(session) >= session->goal)
        call->asks = RTS_ASKS_SUSPEND;
}

static void tell(const struct session *session, int sends) {
    const struct format *format = session->format;
    if (sends) {
        printf("%s: %" PRIu32 " packets sent, %" PRIu64 " refused, %" PRIu64 " calls missed\n", format->name, session->packets, session->refused, session->missed);
        return;
    }
    int64_t lost = (int64_t)expected(session) - session->packets;
    int64_t silence = (int64_t)(uint32_t)(session->timestamp - session->first_timestamp);
    if (session->packets > 0)
        silence -= (int64_t)(expected(session) - 1) * format->samples;
    printf("%s: %" PRIu32 " packets, %" PRId64 " lost, %" PRId64 " samples of silence, %" PRIu64 " others, jitter %" PRIu64 " us\n", format->name,
           session->packets, lost, silence, session->others, session->jitter * 1000000 / 16 / format->rate_hz);
}

/* A socket that sends to this address, or receives at it. */
static int open_socket(char *text, int sends, const char *name) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    char *port = strrchr(text, ':');
    if (port == NULL)
        return -1;
    *port++ = 0;
    address.sin_port = htons((uint16_t)atoi(port));
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
        return -1;
    int made = socket(AF_INET, SOCK_DGRAM, 0);
    socklen_t length = sizeof address;
    if (made < 0)
        return -1;
    if (sends)
        return connect(made, (struct sockaddr *)&address, length) == 0 ? made : -1;
    if (bind(made, (struct sockaddr *)&address, length) != 0 || getsockname(made, (struct sockaddr *)&address, &length) != 0)
        return -1;
    printf("%s at %s:%d\n", name, text, ntohs(address.sin_port));
    return made;
}

static int failed(int error) {
    fprintf(stderr, "%s (%s)\n", laxity_message(), strerror(error));
    return error == EPERM ? 4 : 1;
}

/* Makes the upcall of a session: what comes releases one that receives, twice as often as it should at most. */
static int create(struct session *session, int sends) {
    const struct format *format = session->format;
    rts_attributes attributes = RTS_ATTRIBUTES_INIT;
    uint32_t often = sends ? 1 : 2;
    attributes.name = format->name;
    attributes.period_ns = UINT64_C(1000000) * format->period_ms / often;
    attributes.batch = format->batch * often;
    attributes.quantum = format->quantum;
    attributes.pdu_ns = 100000;
    if (!sends) {
        attributes.flags = RTS_DESCRIPTOR;
        attributes.fd = session->socket;
    }
    /* What begins anywhere nobody can guess (RFC 3550, section 5.1). */
    uint32_t anything[3];
    if (getrandom(anything, sizeof anything, 0) != (ssize_t)sizeof anything)
        return errno;
    session->source = anything[0];
    session->sequence = (uint16_t)anything[1];
    session->timestamp = anything[2];
    session->tone[1] = -12000 * format->sine;
    int error = rts_creat(&attributes, sends ? outgoing : incoming, session, &session->rtu);
    return error != 0 ? error : rts_run(session->rtu);
}

int main(int count, char **arguments) {
    rts_options options = RTS_OPTIONS_INIT;
    if (count == 6 && strcmp(arguments[5], "fair") == 0)
        options.rank = RTS_FAIR;
    int sends = count > 1 && strcmp(arguments[1], "send") == 0;
    int seconds = count == 5 || count == 6 ? atoi(arguments[4]) : 0;
    if (seconds < 1 || (!sends && strcmp(arguments[1], "receive") != 0)) {
        fprintf(stderr, "rtp send|receive VOICE:PORT MUSIC:PORT SECONDS [fair]\n");
        return 1;
    }
    int error = rts_start(&options);
    if (error != 0)
        return failed(error);

    static struct session sessions[2];
    for (int number = 0; number < 2; number++) {
        struct session *session = &sessions[number];
        session->format = &formats[number];
        session->goal = (uint32_t)seconds * session->format->rate_hz / session->format->samples;
        session->socket = open_socket(arguments[2 + number], sends, session->format->name);
        if (session->socket < 0) {
            perror(arguments[2 + number]);
            return 1;
        }
        error = create(session, sends);
        if (error != 0)
            return failed(error);
    }
    fflush(stdout);

    /* A packet that is lost at the end is not waited for long. */
    uint64_t until = now_ns() + (uint64_t)(seconds + 10) * 1000000000;
    for (int number = 0; number < 2; number++) {
        int rtu = sessions[number].rtu;
        rts_set wanted = { { UINT64_C(1) << rtu, 0 } };
        error = rts_sleep(&wanted, NULL, until);
        if (error == 0)
            error = rts_close(rtu);
        if (error != 0)
            return failed(error);
        tell(&sessions[number], sends);
        close(sessions[number].socket);
    }
    return rts_end() == 0 ? 0 : 1;
}
