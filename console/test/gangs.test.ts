import assert from "node:assert/strict";
import { test } from "node:test";
import { happenings, placedMembers } from "../src/history.ts";
import { type Decision, type Gang, gangsNamed, type Node, type Pending, type Phase, type Queue } from "../src/objects.ts";
import { blockages, holders, keptCapacity, phaseCounts, search, utilisation } from "../src/overview.ts";

function gang(name: string, { phase = "Running" as Phase, pending = undefined as Pending | undefined, waiting = 0, queue = "default", owner = "" } = {}): Gang {
  const members = { total: 4, pending: waiting, running: 4 - waiting, succeeded: 0, failed: 0 };
  return { metadata: { name, namespace: "team" }, status: { phase, queue, minMember: 4, members, owner, dialect: "volcano", ...(pending && { pending }) } };
}

const waits = (reason: string, ...names: string[]): Pending => ({
  reason, message: "", holders: { count: names.length, names },
});

test("a search finds gangs whose fields have each word, whatever its case", () => {
  const all = [gang("train-1", { queue: "Vision", owner: "jobset/sweep" }), gang("train-2", { pending: waits("NotEnoughQuota") }), gang("serve")];
  const names = (text: string) => search(all, text).map((one) => one.metadata.name);
  assert.deepEqual(names("  "), ["train-1", "train-2", "serve"]);
  assert.deepEqual(names("team/ TRAIN"), ["train-1", "train-2"]);
  assert.deepEqual(names("train vision"), ["train-1"]);
  assert.deepEqual(names("quota"), ["train-2"]);
  assert.deepEqual(names("jobset/sweep"), ["train-1"]);
  assert.deepEqual(names(".*"), []);
});

test("a gang is found by its name, or by its owner, as sentences name it", () => {
  const all = [gang("a", { owner: "tfjob/train" }), gang("b", { owner: "jobset/two" }), gang("c", { owner: "jobset/two" }), gang("tfjob/train2")];
  const names = (name: string) => gangsNamed(all, "team", name).map((one) => one.metadata.name);
  assert.deepEqual(names("a"), ["a"]);
  assert.deepEqual(names("tfjob/train"), ["a"]);
  assert.deepEqual(names("tfjob/train (volcano)"), ["a"]);
  assert.deepEqual(names("tfjob/train (grove)"), []);
  assert.deepEqual(names("jobset/two"), ["b", "c"]);
  assert.deepEqual(gangsNamed(all, "other", "a"), []);
});

test("phases are counted, also those without gangs", () => {
  const counts = phaseCounts([gang("a"), gang("b"), gang("c", { phase: "Inqueue" })]);
  assert.deepEqual([counts.get("Running"), counts.get("Inqueue"), counts.get("Completed")], [2, 1, 0]);
});

test("the reason of most waiting members comes first, with its largest gang", () => {
  const found = blockages([
    gang("a", { pending: waits("Quota"), waiting: 1 }), gang("b", { pending: waits("Quota"), waiting: 3 }),
    gang("c", { pending: waits("Order"), waiting: 2 }), gang("d"),
  ]);
  assert.deepEqual(found.map((one) => [one.reason, one.gangs, one.members, one.largest.metadata.name]),
    [["Quota", 2, 4, "b"], ["Order", 1, 2, "c"]]);
});

test("holders are ordered by the members that wait for them", () => {
  const found = holders([
    gang("a", { pending: waits("R", "team/x", "team/y"), waiting: 1 }), gang("b", { pending: waits("R", "team/y"), waiting: 3 }),
  ], 1);
  assert.deepEqual(found, [{ gang: "team/y", gangs: 2, members: 4 }]);
});

test("utilisation counts free amounts of cordoned nodes as unusable", () => {
  const node = (schedulable: boolean, free: string): Node => ({
    metadata: { name: "n" },
    status: { ready: true, schedulable, pods: 0, members: 0, resources: [{ resource: "cpu", allocatable: "8", requested: "2", free }] },
  });
  assert.deepEqual(utilisation([node(true, "6"), node(false, "6"), node(false, "-1")]).get("cpu"),
    { resource: "cpu", total: 24, requested: 6, unusable: 6 });
});

test("kept capacity is of the queues at the top, which include those below", () => {
  const queue = (name: string, parent: string): Queue => ({
    metadata: { name },
    status: {
      exists: true, parent, weight: 1, priority: 0, strict: false, reclaimable: true, gangs: { running: 0, waiting: 0, notAdmitted: 0 },
      resources: [{ resource: "cpu", used: "0", wanted: "0", promised: "3", reserved: "1", guarantee: "0" }],
    },
  });
  assert.deepEqual(keptCapacity([queue("root", ""), queue("a", "root")]).get("cpu"), { resource: "cpu", promised: 3, reserved: 1 });
});

function decision(action: "Bind" | "Evict", second: number, of: string, pods: NonNullable<Decision["status"]["pods"]>): Decision {
  return {
    metadata: { name: String(second) },
    status: { action, gang: of, gangId: "id", time: `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`, attempt: 1, count: pods.length, pods },
  };
}

test("a gang's history has its decisions and conditions in their order", () => {
  const one = gang("a");
  one.metadata.creationTimestamp = "2026-01-01T00:00:01Z";
  one.status.conditions = [{ type: "Scheduled", status: "True", reason: "Placed", message: "all", lastTransitionTime: "2026-01-01T00:00:09Z" }];
  const pods = [{ namespace: "team", name: "a-0", uid: "1", node: "n1" }];
  const found = happenings(one, [decision("Bind", 5, "team/a", pods), decision("Bind", 6, "team/b", pods)]);
  assert.deepEqual(found.map((each) => `${each.title}: ${each.details}`),
    ["Seen by Tutti: ", "Decided to bind 1 pod: on 1 node, attempt 1", "Scheduled: Placed: all"]);
});

test("the history of a waiting gang ends with its expected start", () => {
  const one = gang("a");
  one.metadata.creationTimestamp = "2026-01-01T00:00:01Z";
  one.status.expectedStart = { earliest: "2026-01-01T00:20:00Z", latest: "2026-01-01T01:05:00Z", basis: "run limits" };
  const last = happenings(one, []).at(-1)!;
  assert.deepEqual(last, {
    time: "2026-01-01T00:20:00Z", title: "Expected to start", details: "at the latest 2026-01-01 01:05:00Z: run limits", expected: true,
  });
  one.status.expectedStart = { basis: "no gang has a run limit" };
  assert.equal(happenings(one, []).length, 1);
});

test("decisions on an earlier gang of the same name are not in the history", () => {
  const one = gang("a");
  one.metadata.uid = "new";
  one.metadata.creationTimestamp = "2026-01-01T00:00:05Z";
  const early = decision("Bind", 1, "team/a", []);
  const own = decision("Bind", 2, "team/a", []);
  own.status.gangId = "new";
  const late = decision("Bind", 6, "team/a", []);
  assert.deepEqual(happenings(one, [early, own, late]).map((each) => each.time),
    ["2026-01-01T00:00:02Z", "2026-01-01T00:00:05Z", "2026-01-01T00:00:06Z"]);
});

test("members are shown where their newest decision placed them, if the gang is still there", () => {
  const one = gang("a");
  one.status.placement = [{ node: "n2", members: 1 }];
  const pod = (name: string, node: string) => ({ namespace: "team", name, uid: name, node });
  const found = placedMembers(one, [
    decision("Bind", 1, "team/a", [pod("a-0", "n1"), pod("a-1", "n1")]), decision("Bind", 2, "team/a", [pod("a-0", "n2")]),
  ]);
  assert.deepEqual(found, [{ name: "a-0", node: "n2" }]);
});
