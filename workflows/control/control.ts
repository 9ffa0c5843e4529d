import { condition, setHandler } from '@temporalio/workflow';
import type { Decision, Question } from '../../core/question.ts';
import { nothingChanged } from '../../core/run-change.ts';
import type { Changed } from '../../core/run-change.ts';
import { askPerson, stopAsking } from '../ladder/ask.ts';
import { pause, resume, stop } from './messages.ts';
import type { ReportedStep } from './messages.ts';

/** What a person asked of a run, and what it has not been told yet; carried over continue-as-new. */
export interface ControlState {
  paused: boolean;
  stopping: boolean;
  /** The last step, with those before it, where it was not reported. */
  unsent: ReportedStep | null;
  /** Absent where an older version has carried over. */
  changed?: Changed;
}

/** Serves pause, resume and stop for one workflow of a run. */
export class Control {
  paused: boolean;
  stopping: boolean;
  unsent: ReportedStep | null;
  changed: Changed;
  /** That all that was told is: the next step begins meanwhile, but only one is ahead of it. */
  told: Promise<unknown> = Promise.resolve();

  constructor(state: ControlState = { paused: false, stopping: false, unsent: null }) {
    this.paused = state.paused;
    this.stopping = state.stopping;
    this.unsent = state.unsent;
    this.changed = state.changed ?? nothingChanged();
    setHandler(pause, () => void (this.paused = true));
    setHandler(resume, () => void (this.paused = false));
    setHandler(stop, () => {
      this.stopping = true;
      stopAsking();
    });
  }

  /** Lets something be told while the run goes on. Where it cannot be, that is thrown to who tells next, and to who ends. */
  tell(telling: Promise<unknown>): void {
    this.told = Promise.all([this.told, telling]);
    this.told.catch(() => undefined);
  }

  get state(): ControlState {
    const { paused, stopping, unsent, changed } = this;
    return { paused, stopping, unsent, changed };
  }

  /** Holds while the run is paused. */
  async pass(): Promise<'go' | 'stop'> {
    await condition(() => !this.paused || this.stopping);
    return this.stopping ? 'stop' : 'go';
  }

  /** Asks a person, and waits for the answer; a run that is being stopped asks nobody. */
  ask<D extends Decision>(question: Question<D>): Promise<D | 'stop'> {
    return this.stopping ? Promise.resolve('stop') : askPerson(question);
  }
}
