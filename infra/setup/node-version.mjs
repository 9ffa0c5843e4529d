/**
 * Why a version of Node.js is none that Gradus runs on, and what to do; null for one that `engines` in package.json
 * allows.
 *
 * @param {string} version as `process.versions.node` has it
 * @returns {string | null}
 */
export function nodeProblem(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > 20 && major <= 24) return null;
  if (major === 20 && minor >= 10) return null;
  return (
    `Gradus runs on Node.js 20.10 to 24 and this is ${version}. ` +
    'Install one of these (22 is a good choice) and run the command again.'
  );
}
