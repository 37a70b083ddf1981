import { useState } from "preact/hooks";

export function Login({ onToken, message }: { onToken: (token: string) => void; message: string }) {
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
