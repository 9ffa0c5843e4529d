import * as types from './types.ts';
import { unknownType } from './control/unknown-names.ts';

export * from './types.ts';
/** What the SDK runs for any other type. */
export default unknownType(Object.keys(types));
