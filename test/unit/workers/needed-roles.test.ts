import { expect, test } from 'vitest';
import { ROLES } from '../../../core/names.ts';
import { builtInEnvironments } from '../../../environments/families/index.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { neededRoles } from '../../../workers/tier.ts';
import ladderCalculator from '../../support/ladder-calculator.ts';

const builtIn = inThisProcess(builtInEnvironments);

test('queues of tiers are served where a function judges there, and not for pools and people', () => {
  expect(neededRoles(ROLES, builtIn.values())).toEqual([
    'orchestrator',
    'rollout',
    'tool',
    'verifier',
    'learner',
  ]);
  const own = inThisProcess([ladderCalculator].flat());
  expect(neededRoles(ROLES, [...builtIn.values(), ...own.values()])).toEqual(ROLES);
});

test('a process that is for tiers alone serves them though nothing asks them yet', () => {
  expect(neededRoles(['simulation'], builtIn.values())).toEqual(['simulation']);
});
