import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Command } from 'commander';
import { ObjectStore } from '../store/objects/object-store.ts';
import { readLedger } from '../store/ladder/ledger.ts';
import { parseSpec } from '../spec/parse-spec.ts';
import { builtInEnvironments } from '../environments/families/index.ts';
import { totalTime } from '../core/time/time-split.ts';
import { DEFAULT_STATE_DIR } from '../infra/dev/state-dir.ts';
import { confidenceOf, reportRun, summarizeRun } from '../cli/curriculum-report.ts';
import { exit, exitWithReader } from '../cli/exit.ts';
import { fail } from '../cli/fail.ts';
import { chemistry as chemistryPlugin } from '../plugins/molecules/plugin.ts';
import { makeChemistry } from '../plugins/molecules/report/chemistry.ts';
import { readDesigns } from '../plugins/molecules/report/designs.ts';
import { assertMolecules } from '../plugins/molecules/report/assert-molecules.ts';
import { fastTierOnly } from '../plugins/molecules/report/fast-only.ts';
import {
  JUDGE,
  judgeReport,
  judgesOf,
  reportIsDue,
  untilLadderIsDone,
} from '../plugins/molecules/report/judge-report.ts';
import type { JudgedStages } from '../plugins/molecules/report/judge-report.ts';
import { countText, duration, toolName } from '../plugins/molecules/report/names.ts';
import { moleculesPage } from '../plugins/molecules/report/page/page.ts';
import { makeReport } from '../plugins/molecules/report/report.ts';
import type { MoleculesReport, ReportTier } from '../plugins/molecules/report/report.ts';
import { showReport } from '../plugins/molecules/report/tables.ts';
import { note, print } from '../cli/printable.ts';
import { readSpec } from '../cli/read-spec.ts';
import { runSpec } from '../cli/run-spec.ts';
import type { FinishedRun } from '../cli/run-spec.ts';
import { withStackFlags } from '../cli/stack-flags.ts';
import type { InstallationOptions } from '../cli/stack-with-workers.ts';

interface DemoOptions extends InstallationOptions {
  chemistry?: boolean;
  spec: string;
  page?: string;
  json?: boolean;
}

/** Trains a designer of molecules up the verification ladder, and shows what came of it. */
async function demo({ spec: file, page, json, chemistry: wanted, ...options }: DemoOptions): Promise<number> {
  const say = json ? note : print;
  const chemistry = wanted !== false && (await makeChemistry(say));
  const written = await readSpec(file);
  const spec = chemistry ? written : fastTierOnly(written);
  const workflowId = `demo-${path.basename(file, '.json')}${chemistry ? '' : '-fast'}`;
  const environments = new Map(builtInEnvironments.map((environment) => [environment.name, environment]));
  const parsed = parseSpec(spec, workflowId, environments);
  assertMolecules(parsed);
  const tiers: readonly ReportTier[] = parsed.verification?.rungs ?? [LOWEST];
  const stateDir = path.resolve(options.stateDir ?? DEFAULT_STATE_DIR);
  const pageFile = path.resolve(page ?? path.join(stateDir, 'molecules.svg'));

  const run = {
    ...options,
    plugins: chemistry ? [chemistryPlugin] : [],
    spec,
    workflowId,
    say,
    ...(chemistry && { reportIsDue: (client: FinishedRun['client']) => reportIsDue(client, workflowId) }),
  };
  const outcome = await runSpec(run, async (finished) => {
    const { client, settings, result, progress } = finished;
    const confidence = confidenceOf(spec);
    if (tiers.every(({ tier }) => tier !== 'world')) await untilLadderIsDone(client, progress.run, say);
    const judged =
      chemistry && result.after ? await judgeReport(client, progress.run, judgesOf(tiers), say) : null;
    const store = await ObjectStore.connect(settings.store);
    try {
      const read = (stages: string[]) =>
        readDesigns(store, progress.run, stages, [
          ...tiers.map(({ verifier }) => verifier),
          ...judgesOf(tiers),
        ]);
      const report = makeReport({
        rungs: tiers,
        judge: judged && JUDGE,
        training: await read(result.stages.filter(({ kind }) => kind === 'rl').map(({ name }) => name)),
        before: await read(['before']),
        after: await read(['after']),
        ledger: await readLedger(store, progress.run),
        confidence,
      });
      const seconds = finished.seconds();
      reportRun(result, progress, confidence, seconds, say);
      say(showReport(report));
      const text = { title: TITLE, lines: linesOf(finished, report, judged) };
      await writeFile(pageFile, moleculesPage(text, report));
      say(`page ${pageFile}`);
      if (json) {
        const summary = summarizeRun(result, progress, confidence, seconds);
        print(JSON.stringify({ ...summary, chemistry, judged, report: brief(report), page: pageFile }));
      }
      return 0;
    } finally {
      store.close();
    }
  });
  return outcome === 'interrupted' ? 130 : outcome;
}

const TITLE = 'Molecules that climbed the verification ladder';
/** Of a spec without a ladder, or where nothing higher can be asked. */
const LOWEST: ReportTier = { verifier: 'molecule', tier: 'fast', passAtLeast: 1 };

function linesOf(
  { result, progress }: FinishedRun,
  report: MoleculesReport,
  judged: JudgedStages | null,
): string[] {
  const [lowest] = report.funnel;
  const run =
    `Run ${progress.run}: ${countText(result.steps)} steps in ${duration(totalTime(progress.seconds))}, ` +
    `${countText(lowest?.candidates ?? 0)} candidates, ${countText(lowest?.different ?? 0)} different molecules. ` +
    `Weights ${result.checkpoint.weights.slice(0, 12)}.`;
  if (result.after === null) return [run, 'The run was stopped before its end: there is nothing to compare.'];
  if (judged === null) return [run, 'The fast tier alone has judged: xTB and DFT had no worker.'];
  const cost = Object.entries(judged).map(([verifier, { before, after }]) => {
    const spent = duration(before.seconds + after.seconds);
    return `${countText(before.computed + after.computed)} calculations by ${toolName(verifier)} (${spent})`;
  });
  return [
    run,
    'Before and after RL are measured on tasks that no decision of the run has seen, with confidence intervals.',
    `Judging these took ${cost.join(' and ')}, which are not in the funnel.`,
  ];
}

/** For one line of JSON: of the pairs, how many. */
const brief = (report: MoleculesReport) => ({
  ...report,
  calibration: report.calibration.map(({ pairs, ...rest }) => ({ ...rest, pairs: pairs.length })),
});

exitWithReader();
withStackFlags(new Command('demo:molecules'))
  .description('Trains a policy that designs molecules, judged by RDKit, xTB and DFT.')
  .option('--spec <file>', 'the curriculum', 'examples/molecules.json')
  .option('--page <file>', 'where the SVG page goes (default: molecules.svg in the state folder)')
  .option('--no-chemistry', 'leave out xTB and DFT: the fast tier alone judges')
  .option('--json', 'end with one JSON line on stdout; everything else goes to stderr')
  .action((options: DemoOptions) => demo(options).then(exit, fail))
  .parse();
