'use strict'

// node -r longstack/register app.js: tracing is on from the first line, options come from the environment.
// What is wrong there is said in one line, by the main thread, and the program still runs.

const { shared: { tracer }, options: { environmentOptions }, warnings: { printFromMainThread, isUnsafeVersion } } = require('./start')

if (!tracer.enabled()) {
  if (isUnsafeVersion(process.versions.node)) printFromMainThread(`on Node ${process.version} a caught stack overflow is fatal while async hooks are on (CVE-2025-59466); update Node.`)
  tracer.apply(environmentOptions())
}
