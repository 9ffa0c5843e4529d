import type { Json } from '../../core/json/json.ts';
import type { SubjectBlock } from '../../environments/contract/environment.ts';
import calculator from './ladder-calculator.ts';

// The calculator with a ladder, whose subjects are drawn as a mark beside what was expected.

const XMLNS = 'http://www.w3.org/2000/svg';

function present(subject: Json): SubjectBlock[] {
  const { expected, value } = subject as { expected: number; value: number | null };
  const off = value === null ? 100 : Math.min(100, Math.abs(expected - value));
  const svg = `<svg xmlns="${XMLNS}" width="220" height="40"><path d="M 10 20 H 210" stroke="#000"/><circle cx="${110 + off}" cy="20" r="6"/></svg>`;
  return [
    { kind: 'svg', svg, alt: `A mark ${off} off the middle` },
    { kind: 'table', columns: ['expected', 'answered'], rows: [[expected, value ?? 'nothing']] },
    { kind: 'text', text: '<img src=x onerror=alert(1)>\u202e is what a person reads' },
  ];
}

export default { ...calculator, present };
