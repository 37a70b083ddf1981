// Parts that several pages have.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Snapshot } from "./feed.ts";
import type { NamedGangs, Phase } from "./objects.ts";
import { writeQuantity } from "./quantities.ts";
import { gangAddress } from "./address.ts";

// Title, whether what it shows is current, and why not.
export function Title({ children, of }: { children: ComponentChildren; of: readonly Snapshot<unknown>[] }) {
  const failed = of.find((one) => one.freshness === "failed");
  // What a user may not see is a remark: the rest is current.
  const remarks = [...new Set(of.filter((one) => one.message && one.freshness !== "failed").map((one) => one.message))];
  const loading = of.some((one) => one.freshness === "loading");
  const [word, kind] = failed ? ["not current", "bad"] : loading ? ["loading", "idle"] : ["live", "good"];
  return (
    <>
      <h1>{children} <span class={`badge ${kind}`} role="status">{word}</span></h1>
      {failed && <p class="error" role="alert">{failed.message}</p>}
      {remarks.map((one) => <p class="warning" key={one}>{one}</p>)}
    </>
  );
}

// Why a part of a page has no content, or old one.
export function NotShown({ of }: { of: Snapshot<unknown> }) {
  if (of.freshness === "forbidden") return <Empty>{of.message}</Empty>;
  return of.freshness === "failed" ? <p class="error">{of.message}</p> : null;
}

export function SearchBox({ value, onSearch }: { value: string; onSearch: (text: string) => void }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const typed = (event: KeyboardEvent) => {
      const at = event.target as HTMLElement;
      if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName)) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener("keydown", typed);
    return () => removeEventListener("keydown", typed);
  }, []);
  return (
    <input ref={input} type="search" class="search" value={value} aria-label="Search gangs by name, owner, namespace, queue or reason"
      placeholder="Search gangs ( / )" onInput={(event) => onSearch(event.currentTarget.value)} />
  );
}

const THEMES = ["auto", "light", "dark"] as const;

export function ThemeButton() {
  const [theme, setTheme] = useState(() => localStorage.getItem("tutti.theme") ?? "auto");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("tutti.theme", theme);
  }, [theme]);
  const next = THEMES[(THEMES.findIndex((one) => one === theme) + 1) % THEMES.length]!;
  return <button type="button" onClick={() => setTheme(next)} title={`Change to ${next}`}>Theme: {theme}</button>;
}

const KINDS: Record<Phase, string> = {
  Running: "good", Starting: "busy", Unknown: "bad", Inqueue: "wait", Pending: "idle", Completed: "done",
};

export function PhaseBadge({ phase }: { phase: Phase }) {
  return <span class={`badge ${KINDS[phase] ?? "idle"}`}>{phase}</span>;
}

// A gang at "namespace/name", shown by its name for users, which a list of the API has instead.
export function GangLink({ place, title = place }: { place: string; title?: string }) {
  return <a href={gangAddress(place)}>{title}</a>;
}

// Names that the user may see, and how many more there are.
export function Gangs({ named }: { named: NamedGangs }) {
  const names = named.names ?? [];
  const rest = named.count - names.length;
  return (
    <ul class="inline">
      {names.map((one) => <li key={one}><GangLink place={one} /></li>)}
      {rest > 0 && <li>{names.length ? `${rest} more` : `${rest} ${rest === 1 ? "gang" : "gangs"}`}</li>}
    </ul>
  );
}

export interface Part {
  kind: string;
  value: number;
  title: string;
}

// Amounts side by side, as parts of a whole; `marks` are lines across.
export function Bar({ label, whole, parts, marks = [] }: {
  label: string; whole: number; parts: readonly Part[]; marks?: readonly Part[];
}) {
  const width = (value: number) => `${whole > 0 ? Math.min(100, (100 * value) / whole) : 0}%`;
  return (
    <div class="bar" role="img" aria-label={label} title={label}>
      {parts.map((one) => <span key={one.kind} class={one.kind} style={{ width: width(one.value) }} />)}
      {marks.map((one) => <i key={one.kind} class={one.kind} style={{ left: width(one.value) }} />)}
    </div>
  );
}

export function Amount({ resource, value }: { resource: string; value: number | undefined }) {
  return <>{value === undefined ? "–" : writeQuantity(resource, value)}</>;
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

// A table that scrolls by itself where the page is narrow; reachable by keyboard for that.
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return <div class="scroll" role="region" aria-label={label} tabIndex={0}>{children}</div>;
}

export function Choice({ label, value, options, onChoice }: {
  label: string; value: string; options: readonly string[]; onChoice: (value: string) => void;
}) {
  return (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => onChoice(event.currentTarget.value)}>
        {options.map((one) => <option key={one} value={one}>{one}</option>)}
      </select>
    </label>
  );
}
