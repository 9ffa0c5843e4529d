import { calculatorEnvironment, slowCalculatorEnvironment } from './calculator/environment.ts';
import { calculatorNegativesEnvironment } from './calculator/negatives.ts';
import { calculatorHintedEnvironment } from './calculator/hinted.ts';
import { codeEnvironment } from './code/environment.ts';
import type { Environment } from '../contract/environment.ts';
import { BUILT_IN, byName, loadModule } from '../host/load-module.ts';
import type { Loaded } from '../host/load-module.ts';
import { miniwobEnvironment, simpleMiniwobEnvironment } from './miniwob/environment.ts';
import { moleculesEnvironment } from './molecules/environment.ts';
import { programsEnvironment } from './programs/environment.ts';
import { retailEnvironment } from './retail/environment.ts';
import { searchCorpusEnvironment } from './search-qa/corpora/environment.ts';
import { searchQaEnvironment } from './search-qa/environment.ts';
import { searchSetsEnvironment } from './search-qa/sets/environment.ts';
import { webShopEnvironment } from './web-shop/environment.ts';
import { webShopBrowserEnvironment } from './web-shop/in-browser.ts';
import { swePackagesEnvironment } from './swe/packages/environment.ts';
import { sweSmallEnvironment } from './swe/small/environment.ts';
import { toolMathEnvironment } from './tool-math/environment.ts';

export const builtInEnvironments: Environment[] = [
  calculatorEnvironment(),
  slowCalculatorEnvironment(),
  calculatorNegativesEnvironment(),
  calculatorHintedEnvironment(),
  codeEnvironment(),
  miniwobEnvironment(),
  simpleMiniwobEnvironment(),
  moleculesEnvironment(),
  programsEnvironment(),
  retailEnvironment(),
  searchQaEnvironment(),
  searchCorpusEnvironment('foldoc', 'the Free On-line Dictionary of Computing'),
  searchCorpusEnvironment('python', "Python's library reference"),
  searchSetsEnvironment('layer-wise'),
  searchSetsEnvironment('random'),
  webShopEnvironment(),
  webShopBrowserEnvironment(),
  swePackagesEnvironment(),
  sweSmallEnvironment(),
  toolMathEnvironment(),
];

export const loadedBuiltIns = (): Loaded[] =>
  builtInEnvironments.map((environment) => ({ environment, file: BUILT_IN }));

/**
 * The built-in environments and those of the given modules, by name.
 * Throws GradusError('environment', 'module' | 'shape' | 'duplicate').
 */
export async function loadEnvironments(paths: readonly string[]): Promise<Map<string, Environment>> {
  const loaded = await loadModules(paths);
  return new Map([...loaded].map(([name, { environment }]) => [name, environment]));
}

/** As `loadEnvironments`, each with the module that it is from. */
export async function loadModules(paths: readonly string[]): Promise<Map<string, Loaded>> {
  const loaded = loadedBuiltIns();
  for (const path of paths) loaded.push(...(await loadModule(path)));
  const named = byName(loaded.map((one) => ({ ...one, name: one.environment.name })));
  return new Map([...named].map(([name, { environment, file }]) => [name, { environment, file }]));
}
