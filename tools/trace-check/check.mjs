// Checks a trace against what its writer says is in it. Exit code 1 and a list of differences if it is not so.
import { readFileSync } from "node:fs";
import { start } from "./processor.mjs";

const [webDist, tracePath, expectPath] = process.argv.slice(2);
const expected = JSON.parse(readFileSync(expectPath, "utf8"));
const processor = await start(webDist);
processor.load(readFileSync(tracePath));

const problems = [];
const count = (sql) => Number(processor.query(sql)[0].n);

for (const stat of processor.query(
  "select name, idx, severity, value from stats where severity in ('error', 'data_loss') and value != 0",
)) {
  problems.push(`stat ${stat.name} (${stat.severity}) is ${stat.value}`);
}
const open = count("select count(*) as n from slice where dur < 0");
if (open) problems.push(`${open} slices are open`);

// By run (a process), track and name. To Perfetto a point in time is a slice of no length.
const found = new Map();
for (const { run, track, name, count, dur } of processor.query(
  `select process.name as run, track.name as track, slice.name as name, count(*) as count, sum(slice.dur) as dur
   from slice join process_track track on slice.track_id = track.id join process using (upid) group by 1, 2, 3`,
)) {
  found.set(JSON.stringify([run, track, name]), [count, dur]);
}
const written = new Map();
for (const { run, track, name, count, total_duration_ns } of expected.slices) {
  const key = JSON.stringify([run, track, name]);
  const [n, dur] = written.get(key) ?? [0n, 0n];
  written.set(key, [n + BigInt(count), dur + BigInt(total_duration_ns)]);
}
for (const key of new Set([...written.keys(), ...found.keys()])) {
  const [[n, dur], [count, total]] = [found, written].map((side) => side.get(key) ?? [0n, 0n]);
  if (n !== count || dur !== total) {
    problems.push(`${key}: ${n} slices of ${dur} ns, expected ${count} of ${total} ns`);
  }
}
const slices = [...written.values()].reduce((sum, [count]) => sum + count, 0n);
const all = BigInt(count("select count(*) as n from slice"));
if (all !== slices) problems.push(`${all} slices and points in all, expected ${slices}`);
const values = count("select count(*) as n from counter");
if (values !== expected.counter_values) {
  problems.push(`${values} counter values, expected ${expected.counter_values}`);
}

if (problems.length) {
  console.error(`${tracePath}: not what was written\n  ${problems.join("\n  ")}`);
  process.exit(1);
}
console.log(
  `${tracePath}: ${slices} slices and points, ${values} counter values, ` +
    `all as written (trace processor ${processor.version})`,
);
