import assert from "node:assert/strict";
import { test } from "node:test";
import type { Queue } from "../src/objects.ts";
import { describe, drawingOf, INSTANTS_MAX, QueueHistory, SERIES_MAX } from "../src/queue_history.ts";

const GPU = "nvidia.com/gpu";

function queue(name: string, used: number, deserved?: number): Queue {
  const amounts = { resource: GPU, used: String(used), wanted: "0", promised: "0", reserved: "0", guarantee: "0" };
  const status = {
    exists: true, weight: 1, priority: 0, strict: false, reclaimable: true, gangs: { running: 0, waiting: 0, notAdmitted: 0 },
    resources: [deserved === undefined ? amounts : { ...amounts, deserved: String(deserved) }],
  };
  return { metadata: { name }, status };
}

const used = (history: QueueHistory, name = "a") => history.lines(name, GPU).map((line) => line.map((one) => one.used));

test("what is read every two seconds is one line", () => {
  const history = new QueueHistory();
  assert.equal(history.since, undefined);
  [4, 8, 6].forEach((amount, at) => history.take([queue("a", amount, 5)], 1000 + 2000 * at));
  assert.equal(history.since, 1000);
  assert.deepEqual(history.lines("a", GPU), [[
    { at: 1000, used: 4, deserved: 5 }, { at: 3000, used: 8, deserved: 5 }, { at: 5000, used: 6, deserved: 5 },
  ]]);
  assert.deepEqual(history.lines("a", "cpu"), []);
  assert.deepEqual(history.lines("b", GPU), []);
});

test("a line ends where nothing was read, and where the queue was not there", () => {
  const history = new QueueHistory();
  for (const at of [0, 2, 30, 32]) history.take([queue("a", at), ...(at === 2 ? [] : [queue("b", at)])], at * 1000);
  history.take([queue("a", 34)], 34_000);
  assert.deepEqual(used(history), [[0, 2], [30, 32, 34]]);
  assert.deepEqual(used(history, "b"), [[0], [30, 32]]);
});

test("a queue that is new has nothing of the time before", () => {
  const history = new QueueHistory();
  history.take([queue("a", 1)], 0);
  history.take([queue("a", 1), queue("b", 7)], 2000);
  assert.deepEqual(history.lines("b", GPU), [[{ at: 2000, used: 7, deserved: undefined }]]);
});

test("a day has a bounded number of points, from the first to the newest, without gaps", () => {
  const history = new QueueHistory();
  const polls = 43_200;
  for (let at = 0; at < polls; at++) {
    history.take([queue("a", at)], at * 2000);
    if (at % 1000 === 0) assert.ok(used(history).flat().length <= INSTANTS_MAX);
  }
  const [line, ...others] = used(history);
  assert.deepEqual(others, []);
  assert.ok(line!.length > INSTANTS_MAX / 3 && line!.length <= INSTANTS_MAX);
  assert.deepEqual([line![0], line!.at(-1)], [0, polls - 1]);
  assert.ok(line!.every((one, at) => at === 0 || one > line![at - 1]!));
});

test("a queue that is gone is forgotten, and others have its place", () => {
  const history = new QueueHistory();
  const many = (prefix: string) => Array.from({ length: SERIES_MAX }, (_, at) => queue(`${prefix}${at}`, 1));
  history.take(many("a"), 0);
  history.take([queue("b", 2)], 2000);
  assert.deepEqual(used(history, "b"), []);
  for (let at = 2; at < 2000; at++) history.take([queue("b", 2)], 2000 * at);
  assert.deepEqual(used(history, "a1"), [[1]]);
  assert.deepEqual(used(history, `a${SERIES_MAX}`), []);
});

test("after the clock was set back the history begins again", () => {
  const history = new QueueHistory();
  history.take([queue("a", 1)], 5000);
  history.take([queue("a", 2)], 4000);
  assert.equal(history.since, 4000);
  assert.deepEqual(used(history), [[2]]);
});

test("lines fill the box, and the largest amount is at its top", () => {
  const lines = [[{ at: 0, used: 0, deserved: 8 }, { at: 50, used: 4, deserved: undefined }], [{ at: 100, used: 2, deserved: 8 }]];
  assert.deepEqual(drawingOf(lines, 0, 100, 200, 40), {
    used: "M0 40L100 20M200 30h0", area: "M0 40L100 20V40H0ZM200 30h0V40H200Z", deserved: "M0 0h0M200 0h0",
  });
  assert.equal(drawingOf([[{ at: 5, used: 0, deserved: undefined }]], 5, 5, 200, 40).used, "M200 40h0");
  assert.deepEqual(drawingOf([], 0, 100, 200, 40), { used: "", area: "", deserved: "" });
});

test("the drawing has words for those who do not see it", () => {
  const point = (amount: number, deserved?: number) => ({ at: 0, used: amount, deserved });
  assert.equal(describe(GPU, []), "gpu: nothing is known");
  assert.equal(describe(GPU, [[point(7)], [point(4), point(6)]]), "gpu: 6 used (4 to 7)");
  assert.equal(describe("memory", [[point(2 ** 40, 2 ** 30), point(2 ** 40, 2 ** 31)]]),
    "memory: 1 Ti used (unchanged); 2 Gi deserved (1 Gi to 2 Gi)");
});
