// What `gradus/python` exports.
export { python, PythonModule } from './python.ts';
export type { PythonOptions } from './python.ts';
export { pythonEnvironment, pythonExpert, pythonVerifier } from './python-environment.ts';
export type { PythonEnvironmentOptions } from './python-environment.ts';
