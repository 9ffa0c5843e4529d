/** Something that users' code did wrong, or that happened to it: how often, and what was said the last time. */
export interface Incident {
  environment: string;
  /** The module that it is from. */
  file: string;
  /** `tool search`, `verifier style`, `task()`, … */
  function: string;
  /** `hung`, `crashed` or `memory` ended its process; `threw` and `late-error` did not. */
  kind: 'hung' | 'crashed' | 'memory' | 'threw' | 'late-error';
  count: number;
  /** The last one's message. */
  message: string;
}

/** Kinds of incidents that a run keeps, and the length of a message, so that they may pass through histories. */
const MOST = 16;
const LONGEST_MESSAGE = 300;

/** Both lists as one, alike ones added up; beyond sixteen different ones the rarest are dropped. */
export function addIncidents(before: readonly Incident[], more: readonly Incident[]): Incident[] {
  const all = new Map<string, Incident>();
  for (const incident of [...before, ...more]) {
    const key = JSON.stringify([incident.environment, incident.function, incident.kind]);
    const count = (all.get(key)?.count ?? 0) + incident.count;
    all.set(key, { ...incident, count, message: incident.message.slice(0, LONGEST_MESSAGE) });
  }
  return [...all.values()].toSorted((a, b) => b.count - a.count).slice(0, MOST);
}

/** One line for a log. */
export function incidentText({ environment, file, function: name, kind, message }: Incident): string {
  return `${name} of ${environment} (${file}) ${kind}: ${message}`;
}

/** What a person is told of why nothing could be judged; nothing where there is nothing to tell. */
export function causesOf(incidents: readonly Incident[]): string {
  const [most] = incidents;
  return most ? `; ${most.count} times ${incidentText(most)}` : '';
}
