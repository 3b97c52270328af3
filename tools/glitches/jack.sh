#!/bin/sh
# A JACK server with a dummy sound card (256 frames at 48 kHz: 5.3 ms) and a client that makes sound; prints how often the server was late
# within so many seconds, from a second after both were there. Exits 1 where one of the two was not there to the end.
#
#     tools/glitches/jack.sh SECONDS
log=$(mktemp)
export JACK_DEFAULT_SERVER="glitches-$$"
jackd --name "$JACK_DEFAULT_SERVER" --no-realtime --sync -d dummy -r 48000 -p 256 > "$log" 2>&1 &
server=$!
jack_wait -s "$JACK_DEFAULT_SERVER" -w -t 10 > /dev/null 2>&1
jack_metro --bpm 120 > /dev/null 2>&1 &
client=$!
late() { grep -c -e XRun -e 'was not finished' "$log"; }
sleep 1
before=$(late)
sleep "$1"
after=$(late)
if kill -0 $client && kill -0 $server; then
    echo $((after - before))
    found=0
else
    cat "$log" >&2
    found=1
fi
# A client whose server goes first may wait for it for ever.
kill $client
wait $client
kill $server
wait $server
rm "$log"
exit $found
