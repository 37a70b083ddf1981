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

// The address of a gang, given as "namespace/name".
export function gangAddress(place: string): string {
  const at = place.indexOf("/");
  return addressOf("gangs", place.slice(0, at), place.slice(at + 1));
}
