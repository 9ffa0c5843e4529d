import { addIncidents } from '../core/episode/incidents.ts';
import type { Incident } from '../core/episode/incidents.ts';
import type { HostCaller } from '../environments/host/hosted-environment.ts';

/** What users' code did wrong while an activity asked it. */
export class IncidentList {
  all: Incident[] = [];

  /** For everything that the activity asks. */
  asker(signal: AbortSignal): Required<HostCaller> {
    return { signal, incident: (incident) => (this.all = addIncidents(this.all, [incident])) };
  }
}
