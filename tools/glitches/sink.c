/* A sound card without sound: takes 10 ms of 48 kHz stereo in 16 bits from standard input every 10 ms, and prints how often they were not there.
 *
 *     cc -O1 sink.c -o sink && sox -n -t raw -r 48000 -b 16 -c 2 -e signed - synth 60 sine 440 | ./sink SECONDS
 *
 * Between the two there is a pipe of two pages, 43 ms, of which one is filled again when it is empty. The card's clock begins when it is full.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_NS = 10000000, BLOCK = 1920, PIPE = 8192 };

static void sleep_until(int64_t ns) {
    struct timespec at = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
    }
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int main(int count, char **arguments) {
    int64_t blocks = (count > 1 ? atoi(arguments[1]) : 5) * INT64_C(100);
    if (fcntl(STDIN_FILENO, F_SETPIPE_SZ, PIPE) < 0 || fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) < 0) {
        perror("standard input is no pipe");
        return 1;
    }
    int there = 0;
    for (int64_t at = now_ns(); there <= PIPE - BLOCK / 2; at += 1000000) {
        if (ioctl(STDIN_FILENO, FIONREAD, &there) < 0)
            return 1;
        sleep_until(at);
    }
    char block[BLOCK];
    int64_t missing = 0, due = now_ns();
    for (int64_t taken = 0; taken < blocks; taken++) {
        sleep_until(due += PERIOD_NS);
        ssize_t got = read(STDIN_FILENO, block, BLOCK);
        if (got == 0)
            break;
        missing += got < BLOCK;
    }
    printf("%lld\n", (long long)missing);
    return 0;
}
