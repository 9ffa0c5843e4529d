import { condition, setHandler } from '@temporalio/workflow';
import type { Decision } from '../core/ports.ts';
import { decided, pause, resume, stop } from './messages.ts';

/** What a person asked of a run; carried over continue-as-new. */
export interface ControlState {
  paused: boolean;
  stopping: boolean;
}

/** Serves pause, resume, stop and decisions for one workflow of a run. */
export class Control {
  paused: boolean;
  stopping: boolean;
  private readonly decisions: Decision[] = [];

  constructor(state: ControlState = { paused: false, stopping: false }) {
    this.paused = state.paused;
    this.stopping = state.stopping;
    setHandler(pause, () => void (this.paused = true));
    setHandler(resume, () => void (this.paused = false));
    setHandler(stop, () => void (this.stopping = true));
    setHandler(decided, (decision) => this.decide(decision));
  }

  get state(): ControlState {
    return { paused: this.paused, stopping: this.stopping };
  }

  /** Holds while the run is paused. */
  async pass(): Promise<'go' | 'stop'> {
    await condition(() => !this.paused || this.stopping);
    return this.stopping ? 'stop' : 'go';
  }

  decide(decision: Decision): void {
    this.decisions.push(decision);
  }

  /** Waits for the answer to a question; an earlier answer that nobody waited for any more is none to this one. */
  async ask(announce: () => void | Promise<void>): Promise<Decision> {
    this.decisions.length = 0;
    await announce();
    await condition(() => this.decisions.length > 0 || this.stopping);
    return this.decisions.shift() ?? 'stop';
  }
}
