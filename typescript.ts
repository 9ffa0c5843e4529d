// `node --import gradus/typescript …` has Node import TypeScript, as Gradus itself imports environments.
// oxlint-disable-next-line no-unassigned-import -- it registers itself
import 'tsx';
