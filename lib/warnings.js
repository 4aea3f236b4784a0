'use strict'

// What longstack has to say for itself: to listeners of `warning`, or as one line on stderr where there is
// none. Each kind is said once; nothing is said through a stream of the program's.

const fs = require('node:fs')

function createWarnings () {
  /** @type {Set<(event: any) => void>} */
  const listeners = new Set()
  /** @type {Set<string>} */
  const said = new Set()

  return {
    listeners,

    /** @param {string} code @param {string} message */
    warn (code, message) {
      if (said.has(code)) return
      said.add(code)
      if (listeners.size === 0) return printLine(`longstack: ${message}`)
      const warning = Object.assign(new Error(message), { code: `LONGSTACK_WARN_${code}` })
      for (const listener of listeners) {
        try {
          listener(warning)
        } catch {}
      }
    }
  }
}

/** One line on stderr, at once. @param {string} line */
function printLine (line) {
  try {
    fs.writeSync(2, `${line}\n`)
  } catch {}
}

/** One line for the whole process. @param {string} sentence */
function printFromMainThread (sentence) {
  if (require('node:worker_threads').isMainThread) printLine(`longstack: ${sentence}`)
}

/**
 * Versions on which an enabled hook makes a caught stack overflow fatal; nothing in userland helps.
 * @param {string} version
 */
function isUnsafeVersion (version) {
  const [major, minor] = version.split('.').map(Number)
  /** @type {Record<number, number>} first safe minor */
  const safe = { 20: 20, 22: 22, 24: 13, 25: 3 }
  return major < 20 || major === 21 || major === 23 || minor < (safe[major] ?? 0)
}

/** What somebody threw, in a line. @param {unknown} thrown */
function messageOf (thrown) {
  try {
    return String(/** @type {any} */ (thrown)?.message ?? thrown).split('\n', 1)[0].slice(0, 200)
  } catch {
    return 'a value that cannot be shown'
  }
}

module.exports = { createWarnings, printFromMainThread, printLine, messageOf, isUnsafeVersion }
