// The console: login, the frame with its navigation, and the page of the address.

import { type FunctionComponent, render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Api, ApiError, type NoUser } from "./api.ts";
import { LoginEnded, NoAnswer, NoLogin, returnFromLogin, TokenForm } from "./login.tsx";
import { GangPage } from "./pages/gang.tsx";
import { GangsPage } from "./pages/gangs.tsx";
import { MapPage } from "./pages/map.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { QueuesPage } from "./pages/queues.tsx";
import { TimelinePage } from "./pages/timeline.tsx";
import { WhatIfPage } from "./pages/what_if.tsx";
import { addressOf, readRoute, type Route } from "./address.ts";
import { Session, SessionContext, setQuery, useRoute } from "./state.ts";
import { SearchBox, ThemeButton } from "./widgets.tsx";

const TOKEN = "tutti.token";

export interface PageProps {
  route: Route;
}

const PAGES: readonly { page: string; title: string; view: FunctionComponent<PageProps> }[] = [
  { page: "overview", title: "Overview", view: OverviewPage },
  { page: "queues", title: "Queues", view: QueuesPage },
  { page: "gangs", title: "Gangs", view: GangsPage },
  { page: "map", title: "Map", view: MapPage },
  { page: "timeline", title: "Timeline", view: TimelinePage },
  { page: "what-if", title: "What if", view: WhatIfPage },
];

// What is known about the login: "in", or why there is none.
type Login = { at: "unknown" | "in" } | { at: "token form" | "no answer"; message: string } | { at: "no user"; why: NoUser };

function Console() {
  const [token, setToken] = useState(() => sessionStorage.getItem(TOKEN) ?? "");
  const [login, setLogin] = useState<Login>({ at: token ? "in" : "unknown" });
  // Of a page that is shown, and a login that was a proxy's.
  const [ended, setEnded] = useState<NoUser | undefined>();
  const session = useMemo(() => {
    const onUser = (why: NoUser | undefined) => {
      if (!token) return setEnded(why);
      if (!why) return;
      sessionStorage.removeItem(TOKEN);
      setLogin({ at: "token form", message: "The token was refused." });
    };
    return new Session(new Api(token, onUser));
  }, [token]);
  useEffect(() => () => session.stop(), [session]);
  useEffect(() => {
    if (login.at !== "unknown") return;
    // An ingress may authenticate all requests itself.
    session.api.check().then(() => setLogin({ at: "in" }), (error: Error) => {
      const why = error instanceof ApiError ? error.noUser : undefined;
      if (why === "token wanted") setLogin({ at: "token form", message: "" });
      else setLogin(why ? { at: "no user", why } : { at: "no answer", message: error.message });
    });
  }, [session, login]);

  const logIn = (given: string) => {
    sessionStorage.setItem(TOKEN, given);
    setToken(given);
    setLogin({ at: "in" });
  };
  const logOut = () => {
    sessionStorage.removeItem(TOKEN);
    setToken("");
    setLogin({ at: "token form", message: "" });
  };
  switch (login.at) {
    case "unknown": return <main class="login">Connecting …</main>;
    case "token form": return <TokenForm onToken={logIn} message={login.message} />;
    case "no answer": return <NoAnswer message={login.message} />;
    case "no user": return <NoLogin why={login.why} />;
    case "in": return (
      <SessionContext.Provider value={session}>
        <Frame onLogOut={token ? logOut : undefined} ended={ended} />
      </SessionContext.Provider>
    );
  }
}

function Frame({ onLogOut, ended }: { onLogOut: (() => void) | undefined; ended: NoUser | undefined }) {
  const route = useRoute();
  const found = PAGES.find((one) => one.page === route.page) ?? PAGES[0]!;
  const isGang = route.page === "gangs" && route.parts.length === 2;
  const Page = isGang ? GangPage : found.view;
  const main = useRef<HTMLElement>(null);
  const where = [route.page, ...route.parts].join("/");
  const first = useRef(true);
  useEffect(() => {
    document.title = `${isGang ? route.parts[1] : found.title} – Tutti`;
    // A new page is read from its beginning, by a screen reader, too; but a search goes on.
    if (!first.current && document.activeElement?.tagName !== "INPUT") main.current?.focus();
    first.current = false;
  }, [where]);
  const find = (text: string) => {
    const here = readRoute(location.hash);
    if (here.page === "gangs" && !here.parts.length) setQuery("search", text);
    else location.hash = `${addressOf("gangs")}?${new URLSearchParams({ search: text })}`;
  };
  const shown = route.page === "gangs" && !isGang ? (route.query.get("search") ?? "") : "";
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to content</a>
      <header>
        <strong class="brand">Tutti</strong>
        <nav aria-label="Pages">
          {PAGES.map(({ page, title }) => (
            <a key={page} href={addressOf(page)} aria-current={found.page === page ? "page" : undefined}>{title}</a>
          ))}
        </nav>
        <SearchBox value={shown} onSearch={find} />
        <ThemeButton />
        {onLogOut && <button type="button" onClick={onLogOut}>Log out</button>}
      </header>
      <main id="main" tabIndex={-1} ref={main}>
        {ended && <LoginEnded why={ended} />}
        <Page key={isGang ? where : found.page} route={route} />
      </main>
    </>
  );
}

// A token in the address ("#token=…"), as `tutti console` gives it, does not stay there.
function takeTokenOfAddress(): void {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!given) return;
  sessionStorage.setItem(TOKEN, given);
  history.replaceState(null, "", location.pathname);
}

returnFromLogin();
takeTokenOfAddress();
// The address of another run, in a tab that is open.
addEventListener("hashchange", () => { if (location.hash.startsWith("#token=")) location.reload(); });
render(<Console />, document.getElementById("app")!);
