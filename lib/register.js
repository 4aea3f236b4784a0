'use strict'

// node -r longstack/register app.js: tracing is on from the first line, options come from the environment. What
// is wrong there is said in one line, by the main thread, and the program still runs.

const { tracer } = require('./shared')
const { initial } = require('./options')
const { complain } = require('./warnings')

/** Versions on which an enabled hook makes a caught stack overflow fatal; nothing in userland helps. */
function unsafe () {
  const [major, minor] = process.versions.node.split('.').map(Number)
  /** @type {Record<number, number>} first safe minor */
  const safe = { 20: 20, 22: 22, 24: 13, 25: 3 }
  return major < 20 || major === 21 || major === 23 || minor < (safe[major] ?? 0)
}

if (!tracer.enabled()) {
  if (unsafe()) complain(`on Node ${process.version} a caught stack overflow is fatal while async hooks are on (CVE-2025-59466); update Node.`)
  tracer.apply(initial())
}
