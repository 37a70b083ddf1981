import assert from "node:assert/strict";
import { test } from "node:test";
import type { Queue } from "../src/objects.ts";
import { queueRows, sharesOf } from "../src/queue_tree.ts";

function queue(name: string, parent = "", resources: NonNullable<Queue["status"]["resources"]> = []): Queue {
  const status = {
    exists: true, parent, weight: 1, priority: 0, strict: false, reclaimable: true,
    gangs: { running: 0, waiting: 0, notAdmitted: 0 }, resources,
  };
  return { metadata: { name }, status };
}

const shown = (...queues: Queue[]) => queueRows(queues).map(({ queue: one, depth }) => `${depth}${one.metadata.name}`);

test("children are below their parents, by name", () => {
  assert.deepEqual(shown(queue("b", "root"), queue("c", "a"), queue("a", "root"), queue("root")), ["0root", "1a", "2c", "1b"]);
});

test("a queue whose parent does not exist is at the top", () => {
  assert.deepEqual(shown(queue("a", "gone"), queue("b", "a")), ["0a", "1b"]);
});

test("queues that are their own ancestors are shown, each once", () => {
  assert.deepEqual(shown(queue("a", "b"), queue("b", "a"), queue("c", "c")), ["0c", "0a", "1b"]);
});

test("what is used beyond the deserved share is borrowed", () => {
  const amounts = { wanted: "0", promised: "2", reserved: "0", guarantee: "0" };
  const [gpu, cpu] = sharesOf(queue("a", "", [
    { ...amounts, resource: "nvidia.com/gpu", used: "12", deserved: "8", limit: "16" },
    { ...amounts, resource: "cpu", used: "1500m" },
  ]));
  assert.deepEqual([gpu?.borrowed, gpu?.deserved, gpu?.limit, gpu?.promised], [4, 8, 16, 2]);
  assert.deepEqual([cpu?.used, cpu?.borrowed, cpu?.deserved, cpu?.limit], [1.5, 0, undefined, undefined]);
});
