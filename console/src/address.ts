// Addresses of pages: what is behind "#".

// An address is "#/page/part/part?key=value".
export interface Route {
  page: string;
  parts: string[];
  query: URLSearchParams;
}

export function readRoute(hash: string): Route {
  const [path, query] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page, ...parts] = (path ?? "").split("/").map(decoded);
  return { page: page || "overview", parts, query: new URLSearchParams(query ?? "") };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function addressOf(page: string, ...parts: string[]): string {
  return `#/${[page, ...parts].map(encodeURIComponent).join("/")}`;
}

// An address outside of the console, for a link; undefined: it is none of the web.
export function webAddress(text: string | undefined): string | undefined {
  if (!text || !URL.canParse(text)) return undefined;
  const { protocol, href } = new URL(text);
  return protocol === "https:" || protocol === "http:" ? href : undefined;
}

// The address of a gang, given as "namespace/name".
export function gangAddress(place: string): string {
  const at = place.indexOf("/");
  return addressOf("gangs", place.slice(0, at), place.slice(at + 1));
}
