/** Classes of the molecules' page; each tier has a colour. */
export const STYLE = `
.track { fill: #e9ecef; }
.window { fill: #a5d9b1; }
.fast { fill: #6b7785; }
.simulation { fill: #b45f06; }
.high-fidelity { fill: #1f63b5; }
.world { fill: #7442a8; }
.simulation-line { stroke: #b45f06; stroke-width: 2; }
.high-fidelity-line { stroke: #1f63b5; stroke-width: 2; }
.faint { opacity: 0.32; }
.point { fill: #1f63b5; fill-opacity: 0.5; }
.before { fill: #ffffff; stroke: #6b7785; stroke-width: 2; }
.before-line { stroke: #6b7785; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
  .track { fill: #31373f; }
  .window { fill: #2f6b41; }
  .fast { fill: #9aa5b1; }
  .simulation { fill: #f0a04b; }
  .high-fidelity { fill: #74aef0; }
  .world { fill: #bd93e8; }
  .simulation-line { stroke: #f0a04b; }
  .high-fidelity-line { stroke: #74aef0; }
  .point { fill: #74aef0; }
  .before { fill: #1d2127; stroke: #9aa5b1; }
  .before-line { stroke: #9aa5b1; }
}
`;
