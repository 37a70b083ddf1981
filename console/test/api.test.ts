import assert from "node:assert/strict";
import { test } from "node:test";
import { failureOf } from "../src/api.ts";

const JSON_TYPE = { "Content-Type": "application/json; charset=utf-8" };
const status = (message: string) => JSON.stringify({ kind: "Status", message });

async function noUser(response: Response): Promise<string | undefined> {
  return (await failureOf(response))?.noUser;
}

test("an answer of the API is no failure", async () => {
  assert.equal(await failureOf(new Response("{}", { headers: JSON_TYPE })), undefined);
  assert.equal(await failureOf(new Response(null, { status: 304 })), undefined);
});

test("a proxy that wants a login is recognised by its redirect, its page, or a 401 that is none of the API", async () => {
  const redirect = Object.defineProperty(new Response(null), "type", { value: "opaqueredirect" });
  assert.equal(await noUser(redirect), "login wanted");
  assert.equal(await noUser(new Response("<form>", { headers: { "Content-Type": "text/html" } })), "login wanted");
  assert.equal(await noUser(new Response("{}", { status: 401, headers: JSON_TYPE })), "login wanted");
  assert.equal(await noUser(new Response("<h1>401</h1>", { status: 401 })), "login wanted");
});

test("the API says whether a request had a token", async () => {
  const answer = (challenge: string) => new Response(status("why"), { status: 401, headers: { ...JSON_TYPE, "WWW-Authenticate": challenge } });
  assert.equal(await noUser(answer("Bearer")), "token wanted");
  assert.equal(await noUser(answer('Bearer error="invalid_token"')), "token refused");
  assert.equal((await failureOf(answer("Bearer")))?.message, "why");
});

test("other failures keep the login", async () => {
  const busy = await failureOf(new Response(status("too many"), { status: 429, headers: { "Retry-After": "7" } }));
  assert.deepEqual([busy?.message, busy?.retryAfterMs, busy?.noUser], ["too many", 7_000, undefined]);
  const broken = await failureOf(new Response("<h1>", { status: 502, statusText: "Bad Gateway" }));
  assert.deepEqual([broken?.message, broken?.noUser], ["502 Bad Gateway", undefined]);
});
