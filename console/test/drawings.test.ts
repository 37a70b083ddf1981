import assert from "node:assert/strict";
import { test } from "node:test";
import { colourOf } from "../src/colours.ts";
import { endOf, intervalsOf, rowsOf, spanIn, ticks } from "../src/intervals.ts";
import { namespaceOf, readManifests } from "../src/manifests.ts";
import { groupsOf, layOut, mainResources, TITLE_PX, topologyKeys } from "../src/node_map.ts";
import type { Decision, Gang, Node } from "../src/objects.ts";

function node(name: string, requested: string, { pods = 0, members = 0, rack = "", ready = true } = {}): Node {
  const resources = [
    { resource: "cpu", allocatable: "8", requested: "1", free: "7" }, { resource: "x/gpu", allocatable: "8", requested, free: "0" },
  ];
  return { metadata: { name }, status: { ready, schedulable: true, pods, members, resources, ...(rack && { topology: { rack } }) } };
}

function gang(name: string, placement: Record<string, number>, queue = "q"): Gang {
  const members = { total: 2, pending: 0, running: 2, succeeded: 0, failed: 0 };
  return {
    metadata: { name, namespace: "t" },
    status: { phase: "Running", queue, minMember: 2, members, placement: Object.entries(placement).map(([of, count]) => ({ node: of, members: count })) },
  };
}

test("a node is filled as far as it is requested, by members of gangs and other members", () => {
  const nodes = [node("n1", "4", { pods: 4, members: 4 })];
  const gangs = [gang("a", { n1: 1 }, "q1"), gang("b", { n1: 2 }, "q1")];
  const parts = (by: "gang" | "queue") => groupsOf(nodes, gangs, "x/gpu", by, "")[0]!.tiles[0]!.segments;
  assert.deepEqual(parts("gang"), [{ name: "t/a", part: 0.125 }, { name: "t/b", part: 0.25 }, { name: "", part: 0.125 }]);
  assert.deepEqual(parts("queue"), [{ name: "q1", part: 0.375 }, { name: "", part: 0.125 }]);
});

test("a node without known gangs is filled by other pods, and an empty one is not filled", () => {
  const [first, second] = groupsOf([node("n1", "4", { pods: 3 }), node("n2", "0")], [], "x/gpu", "gang", "")[0]!.tiles;
  assert.deepEqual([first!.segments, second!.segments], [[{ name: "", part: 0.5 }], []]);
});

test("nodes are in groups of a label, by name, and a node that is not ready is not usable", () => {
  const nodes = [node("n2", "0", { rack: "r2" }), node("n3", "0"), node("n1", "0", { rack: "r2", ready: false })];
  const groups = groupsOf(nodes, [], "x/gpu", "gang", "rack");
  assert.deepEqual(groups.map((one) => [one.name, one.tiles.map((tile) => tile.node.metadata.name)]), [["", ["n3"]], ["r2", ["n1", "n2"]]]);
  assert.equal(groups[1]!.tiles[0]!.usable, false);
  assert.deepEqual([mainResources(nodes), topologyKeys(nodes)], [["x/gpu", "cpu"], ["rack"]]);
});

test("a thousand nodes fit into a screen and a phone, in one group and in racks", () => {
  const racks = [...Array<number>(31).fill(32), 8];
  for (const [width, height] of [[1250, 650], [357, 340]] as const) {
    for (const sizes of [[1000], racks]) {
      const { side, boxes, height: whole } = layOut(sizes, width, height);
      assert.ok(whole <= height, `${width} ${sizes.length}: ${whole}`);
      assert.ok(side >= 5);
      boxes.forEach((box, at) => {
        assert.ok(box.x + box.width <= width);
        const bottom = box.y + Math.ceil(sizes[at]! / box.columns) * side + (sizes.length > 1 ? TITLE_PX : 0);
        assert.ok(bottom <= whole);
      });
    }
  }
});

test("what does not fit is laid out with the smallest tiles, and nothing at all is possible", () => {
  assert.ok(layOut([100_000], 300, 100).height > 100);
  assert.equal(layOut([10], 0, 0).side, 5);
  assert.deepEqual(layOut([], 100, 100).boxes, []);
});

function decision(action: "Bind" | "Evict", minute: number, of: string, pods: Record<string, string>): Decision {
  return {
    metadata: { name: String(minute) },
    status: {
      action, gang: of, gangId: "", time: new Date(minute * 60_000).toISOString(), attempt: 1, count: 1,
      pods: Object.entries(pods).map(([uid, on]) => ({ namespace: "t", name: uid, uid, node: on })),
    },
  };
}

function waiting(name: string, minute: number, uid = ""): Gang {
  const one = gang(name, {});
  one.metadata = { ...one.metadata, uid, creationTimestamp: new Date(minute * 60_000).toISOString() };
  one.status = { ...one.status, phase: "Inqueue", pending: { reason: "NotEnoughResources", message: "" } };
  return one;
}

function ended(one: Decision, minute: number, end: string): Decision {
  const at = new Date(minute * 60_000).toISOString();
  return { ...one, status: { ...one.status, pods: one.status.pods!.map((pod) => ({ ...pod, ended: at, end })) } };
}

const shown = (found: ReturnType<typeof intervalsOf>) =>
  found.map((one) => [one.title, one.node, one.start / 60_000, one.end / 60_000, one.ended, one.how]);

test("a gang that has ended has the end that the API has, also when it is gone", () => {
  const found = intervalsOf([
    ended(decision("Bind", 1, "t/a", { a0: "n1", a1: "n1" }), 4, "Succeeded"), ended(decision("Bind", 2, "t/b", { b0: "n1" }), 5, "Deleted"),
    ended(decision("Bind", 2, "t/c", { c0: "n1" }), 6, "Deleted"), decision("Evict", 5, "t/d", { c0: "" }),
  ], []);
  assert.deepEqual(shown(found), [
    ["t/a", "n1", 1, 4, "done", "succeeded"], ["t/b", "n1", 2, 5, "known", "deleted"], ["t/c", "n1", 2, 6, "known", "evicted"],
  ]);
});

test("a decision that the planner repeats is one interval", () => {
  const found = intervalsOf([decision("Bind", 1, "t/a", { a0: "n1" }), decision("Bind", 7, "t/a", { a0: "n1" })], [gang("a", { n1: 1 })]);
  assert.deepEqual(shown(found), [["t/a", "n1", 1, Infinity, "now", ""]]);
});

test("a gang waits from its creation to its decision, or still; rows by node have no waits", () => {
  const placed = { ...gang("a", { n1: 1 }) };
  placed.metadata = { ...placed.metadata, creationTimestamp: new Date(60_000).toISOString() };
  const found = intervalsOf([decision("Bind", 3, "t/a", { a0: "n1" })], [placed, waiting("w", 2)]);
  assert.deepEqual(shown(found), [
    ["t/a", "", 1, 3, "waited", ""], ["t/w", "", 2, Infinity, "waited", "NotEnoughResources"], ["t/a", "n1", 3, Infinity, "now", ""],
  ]);
  assert.deepEqual(rowsOf(found, "node", "").map((row) => row.name), ["n1"]);
  assert.deepEqual(rowsOf(found, "gang", "").map((row) => row.name), ["t/a", "t/w"]);
});

test("a waiting gang is expected between two instants, its row is where its wait is, and a window reaches to the second one", () => {
  const one = waiting("w", 2);
  const at = (minute: number) => new Date(minute * 60_000).toISOString();
  one.status.expectedStart = { earliest: at(40), latest: at(50), basis: "run limits" };
  const found = intervalsOf([], [one, waiting("later", 9)]);
  assert.deepEqual(shown(found).at(-1), ["t/w", "", 40, 50, "expected", "run limits"]);
  assert.deepEqual(rowsOf(found, "gang", "").map((row) => row.name), ["t/later", "t/w"]);
  assert.deepEqual(rowsOf(found, "node", ""), []);
  const end = (from: number, now: number) => endOf(found, from * 60_000, now * 60_000) / 60_000;
  assert.deepEqual([end(0, 45), end(0, 12), end(0, 60)], [50, 16, 60]);
  one.status.expectedStart = { basis: "no gang has a run limit" };
  assert.equal(intervalsOf([], [one]).length, 1);
});

test("a gang does not inherit what its predecessor of the same name did", () => {
  const next = waiting("a", 5, "next");
  next.status = { ...next.status, phase: "Running", placement: [{ node: "n1", members: 1 }] };
  const before = { ...decision("Bind", 1, "t/a", { a0: "n1" }) };
  before.status = { ...before.status, gangId: "former" };
  const own = { ...decision("Bind", 6, "t/a", { a1: "n1" }) };
  own.status = { ...own.status, gangId: "next" };
  assert.deepEqual(shown(intervalsOf([before, own], [next])), [
    ["t/a", "n1", 1, 1, "unknown", ""], ["t/a", "", 5, 6, "waited", ""], ["t/a", "n1", 6, Infinity, "now", ""],
  ]);
});

test("gangs have their names for users, and those with equal names share a row", () => {
  const job = gang("second-a843473f-2a42-4665-8d18-7da12094861f", { n1: 1 });
  job.status.title = "job/second";
  const before = decision("Bind", 1, "t/second-b843473f-2a42-4665-8d18-7da12094861f", { b0: "n1" });
  before.status.title = "job/second";
  const found = intervalsOf([ended(before, 2, "Failed"), decision("Bind", 3, `t/${job.metadata.name}`, { a0: "n1" })], [job]);
  const rows = rowsOf(found, "gang", "job/second");
  assert.deepEqual(rows.map((row) => [row.name, row.intervals.map((one) => one.ended)]), [["t/job/second", ["known", "now"]]]);
});

test("an interval ends with the eviction of all its pods, lasts, or has an unknown end", () => {
  const found = intervalsOf([
    decision("Bind", 1, "t/a", { a0: "n1", a1: "n2" }), decision("Bind", 2, "t/b", { b0: "n1", b1: "n1" }),
    decision("Bind", 3, "t/gone", { g0: "n3" }), decision("Evict", 5, "t/other", { a1: "", b0: "" }),
  ], [gang("a", { n1: 1 }), gang("b", { n1: 1 })]);
  assert.deepEqual(found.map((one) => [one.gang, one.node, one.start / 60_000, one.end / 60_000, one.ended]), [
    ["t/a", "n1", 1, Infinity, "now"], ["t/a", "n2", 1, 5, "known"], ["t/b", "n1", 2, Infinity, "now"], ["t/gone", "n3", 3, 3, "unknown"],
  ]);
});

test("rows by gang join the nodes of a decision; rows by node do not", () => {
  const found = intervalsOf([decision("Bind", 1, "t/a", { a0: "n1", a1: "n2" }), decision("Bind", 2, "t/b", { b0: "n1" })],
    [gang("a", { n1: 1, n2: 1 }), gang("b", { n1: 1 })]);
  const rows = (by: "gang" | "node", text = "") => rowsOf(found, by, text).map((row) => [row.name, ...row.intervals.map((one) => one.pods)]);
  assert.deepEqual(rows("gang"), [["t/b", 1], ["t/a", 2]]);
  assert.deepEqual(rows("node"), [["n1", 1, 1], ["n2", 1]]);
  assert.deepEqual(rows("node", "T/A n2"), [["n2", 1]]);
});

test("an interval is cut at the window, and is left out outside of it", () => {
  const one = { gang: "g", title: "g", node: "n", start: 10, end: 30, ended: "known" as const, how: "evicted", pods: 1 };
  assert.deepEqual(spanIn(one, 0, 100), { left: 10, width: 20 });
  assert.deepEqual(spanIn(one, 20, 120), { left: 0, width: 10 });
  assert.deepEqual([spanIn(one, 31, 100), spanIn(one, 0, 10), spanIn(one, 5, 5)], [undefined, undefined, undefined]);
});

test("an axis has at most ten ticks, whatever its length", () => {
  for (const length of [10_000, 900_000, 7_200_000, 86_400_000, 30 * 86_400_000]) {
    const found = ticks(1_234_567, 1_234_567 + length);
    assert.ok(found.length >= 1 && found.length <= 10, `${length}: ${found.length}`);
  }
  assert.ok(ticks(0, 1e15).length <= 100);
});

test("manifests are read as YAML and JSON, one or several; anything else is refused with the reason", () => {
  assert.deepEqual(readManifests("kind: A\n---\n---\nkind: B\n"), [{ kind: "A" }, { kind: "B" }]);
  assert.deepEqual(readManifests('{"kind": "A"}'), [{ kind: "A" }]);
  assert.throws(() => readManifests(""), /no manifest/);
  assert.throws(() => readManifests("- a"), /must be an object/);
  assert.throws(() => readManifests("kind: ["));
  assert.throws(() => readManifests("x".repeat(1_000_001)), /1 MB/);
  assert.equal(namespaceOf([{ kind: "A" }, { metadata: { namespace: "team" } }]), "team");
  assert.equal(namespaceOf([{ metadata: null as unknown as object }]), "");
});

test("a colour belongs to its name, and similar names differ", () => {
  assert.equal(colourOf("t/a"), colourOf("t/a"));
  const names = Array.from({ length: 100 }, (_, at) => `team/train-${at}`);
  assert.ok(new Set(names.map(colourOf)).size > 95);
});
