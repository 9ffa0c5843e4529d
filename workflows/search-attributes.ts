import { defineSearchAttributeKey } from '@temporalio/common';
import type { SearchAttributePair } from '@temporalio/common';

/** Names and types as `SEARCH_ATTRIBUTES` in core/names.ts registers them. */
const KEYS = {
  run: defineSearchAttributeKey('GradusRun', 'KEYWORD'),
  status: defineSearchAttributeKey('GradusStatus', 'KEYWORD'),
  stage: defineSearchAttributeKey('GradusStage', 'KEYWORD'),
  step: defineSearchAttributeKey('GradusStep', 'INT'),
  environment: defineSearchAttributeKey('GradusEnvironment', 'KEYWORD'),
  policyVersion: defineSearchAttributeKey('GradusPolicyVersion', 'KEYWORD'),
  meanReward: defineSearchAttributeKey('GradusMeanReward', 'DOUBLE'),
};

export interface SearchValues {
  run?: string;
  status?: string;
  stage?: string;
  step?: number;
  environment?: string;
  policyVersion?: string;
  meanReward?: number;
}

export function searchAttributes(values: SearchValues): SearchAttributePair[] {
  const pairs: SearchAttributePair[] = [];
  if (values.run !== undefined) pairs.push({ key: KEYS.run, value: values.run });
  if (values.status !== undefined) pairs.push({ key: KEYS.status, value: values.status });
  if (values.stage !== undefined) pairs.push({ key: KEYS.stage, value: values.stage });
  if (values.step !== undefined) pairs.push({ key: KEYS.step, value: values.step });
  if (values.environment !== undefined) pairs.push({ key: KEYS.environment, value: values.environment });
  if (values.policyVersion !== undefined) {
    pairs.push({ key: KEYS.policyVersion, value: values.policyVersion.slice(0, 12) });
  }
  if (values.meanReward !== undefined) pairs.push({ key: KEYS.meanReward, value: values.meanReward });
  return pairs;
}
