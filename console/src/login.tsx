// The pages without a user, and the note of a page whose login has ended.

import { useState } from "preact/hooks";
import type { NoUser } from "./api.ts";

const ADDRESS = "tutti.address";

// Load the page again: a proxy that wants a login shows it then. The present page is shown after it.
function logInAgain(): void {
  sessionStorage.setItem(ADDRESS, location.hash);
  location.reload();
}

// Restore what was shown before a login. Call it before anything reads the address.
export function returnFromLogin(): void {
  const kept = sessionStorage.getItem(ADDRESS);
  sessionStorage.removeItem(ADDRESS);
  if (kept && !location.hash) history.replaceState(null, "", kept);
}

export function TokenForm({ onToken, message }: { onToken: (token: string) => void; message: string }) {
  const [token, setToken] = useState("");
  const given = token.trim().replace(/^Bearer\s+/i, "");
  // A header cannot contain anything else.
  const valid = /^[\x21-\x7e]+$/.test(given);
  return (
    <main class="login">
      <h1>Tutti</h1>
      <form onSubmit={(event) => { event.preventDefault(); if (valid) onToken(given); }}>
        <label for="token">Bearer token of this cluster</label>
        <input id="token" type="password" autocomplete="off" spellcheck={false} autofocus value={token}
          onInput={(event) => setToken(event.currentTarget.value)} />
        <button type="submit" disabled={!valid}>Log in</button>
      </form>
      {message && <p class="error" role="alert">{message}</p>}
      <p>
        For example <code>kubectl create token NAME -n NAMESPACE</code>. The token stays in this tab and is forgotten when the tab is
        closed. With a kubeconfig, <code>tutti console</code> needs none.
      </p>
    </main>
  );
}

// Instead of all pages, behind a proxy: why there is no user.
export function NoLogin({ why }: { why: NoUser }) {
  return (
    <main class="login">
      <h1>Tutti</h1>
      <p class="error" role="alert">{reasonOf(why)}</p>
      <p><button type="button" onClick={logInAgain}>Log in again</button></p>
      {why === "token refused" && (
        <p>
          The proxy in front of this page has logged you in and passed a token on. If it passes an old token on, log out there:
          oauth2-proxy does so at <code>/oauth2/sign_out</code>. If another login does not help, the API server does not trust the
          token's issuer or audience: the log of the API service has its reason.
        </p>
      )}
    </main>
  );
}

// Instead of all pages: the server did not answer at all.
export function NoAnswer({ message }: { message: string }) {
  return (
    <main class="login">
      <h1>Tutti</h1>
      <p class="error" role="alert">{message}</p>
      <p><button type="button" onClick={() => location.reload()}>Try again</button></p>
    </main>
  );
}

// Above a page that stays as it was.
export function LoginEnded({ why }: { why: NoUser }) {
  return (
    <p class="ended" role="alert">
      <span>{reasonOf(why)} What is below is the last known state.</span> <button type="button" onClick={logInAgain}>Log in again</button>
    </p>
  );
}

function reasonOf(why: NoUser): string {
  return why === "token refused" ? "The cluster does not accept the token of your login." : "Your login has ended.";
}
