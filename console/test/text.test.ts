import assert from "node:assert/strict";
import { test } from "node:test";
import { byImportance, readQuantity, writeQuantity } from "../src/quantities.ts";
import { addressOf, gangAddress, readRoute, webAddress } from "../src/address.ts";
import { age, writeDuration, writeInstant, writeUntil } from "../src/time.ts";
import { WatchLines } from "../src/watch_lines.ts";

test("quantities are read with each suffix, exponents and signs", () => {
  const cases: [string, number | undefined][] = [
    ["250m", 0.25], ["64", 64], ["1Ti", 2 ** 40], ["1.5Gi", 1.5 * 2 ** 30], ["2e3", 2000], ["-3Ki", -3072], ["1E", 1e18],
    ["", undefined], ["many", undefined], ["1Xi", undefined], ["1.2.3", undefined],
  ];
  for (const [text, value] of cases) assert.equal(readQuantity(text), value, text);
});

test("quantities are written short, in the units of their resource", () => {
  const cases: [string, number, string][] = [
    ["cpu", 0.25, "250 m"], ["cpu", 9600, "9600"], ["cpu", 96_000, "96 k"], ["nvidia.com/gpu", 8, "8"], ["cpu", 0, "0"],
    ["memory", 2 ** 40, "1 Ti"], ["memory", 1023 * 2 ** 30, "1023 Gi"], ["memory", 1536 * 2 ** 20, "1.5 Gi"], ["cpu", -2, "−2"],
    ["cpu", 99_999.9, "100 k"], ["memory", 2 ** 40 - 1, "1 Ti"],
  ];
  for (const [resource, value, text] of cases) assert.equal(writeQuantity(resource, value), text, `${resource} ${value}`);
});

test("devices come first and pods last", () => {
  assert.deepEqual(byImportance(["pods", "memory", "hugepages-2Mi", "cpu", "nvidia.com/gpu"]),
    ["nvidia.com/gpu", "cpu", "memory", "hugepages-2Mi", "pods"]);
});

test("the spans until a start are written as a range, or as one if they are equal", () => {
  const at = (minute: number) => new Date(minute * 60_000).toISOString();
  assert.equal(writeUntil(at(12), at(57), 0), "12m to 57m");
  assert.equal(writeUntil(at(12), at(12), 0), "12m");
  assert.equal(writeUntil(at(12), at(57), 20 * 60_000), "0s to 37m");
});

test("durations are written with their one or two largest units", () => {
  const cases: [number, string][] = [
    [-5, "0s"], [999, "0s"], [45_000, "45s"], [60_000, "1m"], [95_000, "1m"], [12_000_000, "3h20m"], [36_000_000, "10h"],
    [100_000_000, "1d3h"], [86_400_000 * 30, "30d"],
  ];
  for (const [milliseconds, text] of cases) assert.equal(writeDuration(milliseconds), text, String(milliseconds));
  assert.equal(age("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:01:00Z")), "1m");
  assert.equal(age(undefined, 0), "");
  assert.equal(age("yesterday", 0), "");
  assert.equal(writeInstant("2026-01-01T00:00:00.123456Z"), "2026-01-01 00:00:00Z");
});

test("an address is read as it was written, whatever is in its parts", () => {
  const strange = "a/b?c#d %&<script>";
  const { page, parts } = readRoute(addressOf("gangs", "ns", strange));
  assert.deepEqual([page, parts], ["gangs", ["ns", strange]]);
  assert.deepEqual(readRoute(gangAddress(`ns/${strange}`)).parts, ["ns", strange]);
  assert.deepEqual(readRoute("").page, "overview");
  assert.deepEqual(readRoute("#/gangs/%E0%A4%A").parts, ["%E0%A4%A"]);
  assert.equal(readRoute("#/gangs?search=a%20b").query.get("search"), "a b");
});

test("events are complete whatever the chunks, also within a character", () => {
  const event = { type: "ADDED", object: { metadata: { name: "größe" } } };
  const bytes = new TextEncoder().encode(`${JSON.stringify(event)}\n\n${JSON.stringify(event)}\n`);
  for (let size = 1; size <= bytes.length; size++) {
    const lines = new WatchLines();
    const found = [];
    for (let at = 0; at < bytes.length; at += size) found.push(...lines.take(bytes.slice(at, at + size)));
    assert.deepEqual(found, [event, event]);
  }
});

test("a line without end is refused", () => {
  const lines = new WatchLines();
  const chunk = new Uint8Array(2 ** 20).fill(32);
  assert.throws(() => { for (let at = 0; at < 6; at++) lines.take(chunk); }, /too long/);
});

test("only addresses of the web become links", () => {
  assert.equal(webAddress("https://jaeger.example/ui/trace/1f"), "https://jaeger.example/ui/trace/1f");
  assert.equal(webAddress("http://127.0.0.1:16686/trace/1f"), "http://127.0.0.1:16686/trace/1f");
  for (const text of [undefined, "", "/trace/1f", "javascript:alert(1)", " JavaScript:alert(1)", "data:text/html,x", "ftp://jaeger/1f"]) {
    assert.equal(webAddress(text), undefined, text);
  }
});
