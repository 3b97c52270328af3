/* One end of the flagship's flows over CycloneDDS, as ../README.md has it.
 *
 * Best effort (as sensor data go), each flow a topic of its own with a transport priority: control above video above best effort. All else is CycloneDDS's default, but that hosts
 * are told of each other, since nobody is found by multicast over relays. */
#define _GNU_SOURCE
#include <dds/dds.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "message.h"

/* What has not come so long after the last message was due is lost. */
#define REST_NS 500000000ull
#define MOST_FLOWS 4
#define MOST_ARRIVALS (1 << 17)

struct flow {
  char name[16];
  uint32_t bytes;
  uint64_t period_ns;
  dds_entity_t entity;
};

struct arrival {
  const struct flow *flow;
  uint64_t number, at;
};

static struct flow flows[MOST_FLOWS];
static struct arrival arrivals[MOST_ARRIVALS];
static size_t arrived;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t from_ns, until_ns;

static void fail(const char *what) {
  fprintf(stderr, "cyclone: %s\n", what);
  exit(1);
}

static dds_entity_t checked(dds_entity_t entity, const char *what) {
  if (entity < 0) {
    fprintf(stderr, "cyclone: %s: %s\n", what, dds_strretcode(-entity));
    exit(1);
  }
  return entity;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t then) {
  struct timespec until = {(time_t)(then / 1000000000ull), (long)(then % 1000000000ull)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
  }
}

/* Says that it can be told when, and is told. */
static void when(void) {
  puts("ready");
  fflush(stdout);
  if (scanf("%" SCNu64 " %" SCNu64, &from_ns, &until_ns) != 2)
    fail("not told when");
}

static dds_qos_t *quality(const struct flow *flow) {
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_BEST_EFFORT, 0);
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 16);
  int32_t priority = strcmp(flow->name, "control") == 0 ? 100 : strcmp(flow->name, "video") == 0 ? 50 : 0;
  dds_qset_transport_priority(qos, priority);
  return qos;
}

static void *send_all(void *argument) {
  struct flow *flow = argument;
  uint8_t *bytes = calloc(1, flow->bytes);
  laxity_Message message = {{flow->bytes, flow->bytes, bytes, false}};
  for (uint64_t number = 0; from_ns + number * flow->period_ns < until_ns; number++) {
    sleep_until(from_ns + number * flow->period_ns);
    if (now_ns() >= until_ns)
      break;
    memcpy(bytes, &number, 8);
    memcpy(bytes + flow->bytes - 8, &number, 8);
    /* One that is refused is lost. */
    (void)dds_write(flow->entity, &message);
  }
  free(bytes);
  return NULL;
}

static void came(dds_entity_t reader, void *argument) {
  const struct flow *flow = argument;
  void *samples[16] = {NULL};
  dds_sample_info_t infos[16];
  int count = dds_take(reader, samples, infos, 16, 16);
  uint64_t at = now_ns();
  for (int i = 0; i < count; i++) {
    const laxity_Message *message = samples[i];
    uint64_t front, back;
    if (!infos[i].valid_data || message->payload._length != flow->bytes)
      continue;
    memcpy(&front, message->payload._buffer, 8);
    memcpy(&back, message->payload._buffer + flow->bytes - 8, 8);
    if (front != back)
      continue;
    pthread_mutex_lock(&lock);
    if (arrived < MOST_ARRIVALS)
      arrivals[arrived++] = (struct arrival){flow, front, at};
    pthread_mutex_unlock(&lock);
  }
  if (count > 0)
    dds_return_loan(reader, samples, count);
}

/* Both hosts know each other's address; the far one tells the one by which it is to be reached. */
static void open_domain(int sends, const char *interface, const char *near, const char *far) {
  char config[1024];
  snprintf(config, sizeof config,
           "<CycloneDDS><Domain id=\"any\"><General><Interfaces><NetworkInterface name=\"%s\"/></Interfaces>"
           "<AllowMulticast>false</AllowMulticast>%s%s%s</General>"
           "<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>4</MaxAutoParticipantIndex>"
           "<Peers><Peer address=\"%s\"/></Peers></Discovery></Domain></CycloneDDS>",
           interface, sends ? "" : "<ExternalNetworkAddress>", sends ? "" : far, sends ? "" : "</ExternalNetworkAddress>",
           sends ? far : near);
  checked(dds_create_domain(0, config), "its domain");
}

static void receive_all(void) {
  when();
  sleep_until(until_ns + REST_NS);
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < arrived; i++)
    printf("%s %" PRIu64 " %" PRIu64 "\n", arrivals[i].flow->name, arrivals[i].number, arrivals[i].at);
}

static void await_match(const struct flow *flow) {
  dds_publication_matched_status_t status = {0};
  while (status.current_count == 0) {
    dds_sleepfor(DDS_MSECS(10));
    checked(dds_get_publication_matched_status(flow->entity, &status), "whoever receives");
  }
}

int main(int argc, char **argv) {
  int count = argc - 7;
  if (count < 1 || count > MOST_FLOWS)
    fail("usage: cyclone send|receive installed INTERFACE NEAR FAR PORT FLOW...");
  int sends = strcmp(argv[1], "send") == 0;
  open_domain(sends, argv[3], argv[4], argv[5]);
  dds_entity_t participant = checked(dds_create_participant(0, NULL, NULL), "its participant");
  for (int i = 0; i < count; i++) {
    struct flow *flow = &flows[i];
    if (sscanf(argv[7 + i], "%15[^:]:%" SCNu32 ":%" SCNu64, flow->name, &flow->bytes, &flow->period_ns) != 3 || flow->bytes < 16)
      fail("no flow");
    dds_qos_t *qos = quality(flow);
    dds_entity_t topic = checked(dds_create_topic(participant, &laxity_Message_desc, flow->name, NULL, NULL), "a topic");
    if (sends) {
      flow->entity = checked(dds_create_writer(participant, topic, qos, NULL), "a writer");
    } else {
      dds_listener_t *listener = dds_create_listener(flow);
      dds_lset_data_available(listener, came);
      flow->entity = checked(dds_create_reader(participant, topic, qos, listener), "a reader");
    }
    dds_delete_qos(qos);
  }
  if (sends) {
    pthread_t threads[MOST_FLOWS];
    for (int i = 0; i < count; i++)
      await_match(&flows[i]);
    when();
    for (int i = 0; i < count; i++)
      if (pthread_create(&threads[i], NULL, send_all, &flows[i]) != 0)
        fail("a thread");
    for (int i = 0; i < count; i++)
      pthread_join(threads[i], NULL);
  } else {
    receive_all();
  }
  puts("end");
  fflush(stdout);
  /* What closing it waits for is nobody's latency. */
  _Exit(0);
}
