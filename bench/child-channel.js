'use strict'

// Starts a child process and sends it commands, one at a time; child.js replies.

const { spawn } = require('node:child_process')

const MAX_STDERR = 8_000 // characters, from the end

/** Failure of a child, with a sentence as its message. */
class ChildFailure extends Error {}

/** @param {string} stderr @returns {string} the line of the error, or the last line */
function errorLineOf (stderr) {
  const lines = stderr.split('\n').map((line) => line.trim()).filter(Boolean)
  const isError = (/** @type {string} */ line) =>
    /^(FATAL ERROR|(Uncaught )?[A-Za-z]*Error\b.*:|RangeError|.*\[ERR_)/.test(line)
  return (lines.find(isError) ?? lines.at(-1) ?? '').slice(0, 160)
}

/**
 * Starts a child that answers commands over IPC.
 * @param {string} command
 * @param {string[]} args
 * @param {{ env: Record<string, string | undefined>, cwd: string }} options
 */
function startChild (command, args, options) {
  let stderr = ''
  /** @type {((answer: any) => void) | undefined} */
  let answered
  /** @type {((error: Error) => void) | undefined} */
  let failed
  /** @type {Error | undefined} */
  let failure

  // Bubbleprof's collector writes to descriptor 3 of some programs.
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'ipc'] })
  child.stdio[3]?.on('error', () => {})
  child.stdio[3]?.on('data', () => {})
  child.stderr?.setEncoding('utf8').on('data', (text) => { stderr = (stderr + text).slice(-MAX_STDERR) })
  child.on('message', (/** @type {any} */ answer) => {
    if (answer.error === undefined) answered?.(answer)
    else failed?.(new ChildFailure(answer.error))
  })
  const fail = (/** @type {Error} */ error) => {
    failure ??= error
    failed?.(failure)
  }
  const closed = new Promise((resolve) => {
    child.on('error', (error) => {
      fail(error)
      resolve(undefined)
    })
    child.on('close', (code, signal) => {
      const exit = signal === null ? `exit code ${code}` : `signal ${signal}`
      const reason = /heap out of memory/.test(stderr) ? 'out of memory' : errorLineOf(stderr)
      fail(new ChildFailure(reason === '' ? exit : `${reason} (${exit})`))
      resolve(undefined)
    })
  })

  return {
    /**
     * Sends a command and waits for the reply.
     * @param {object | undefined} command undefined waits for the child's first message
     * @param {number} timeout ms
     * @returns {Promise<any>}
     */
    request (command, timeout) {
      return new Promise((resolve, reject) => {
        if (failure !== undefined) return reject(failure)
        const timer = setTimeout(() => {
          reject(new ChildFailure(`no answer within ${timeout / 1000} s`))
        }, timeout)
        answered = (answer) => {
          clearTimeout(timer)
          resolve(answer)
        }
        failed = (error) => {
          clearTimeout(timer)
          reject(error)
        }
        if (command !== undefined) child.send(command, (error) => error !== null && failed?.(error))
      })
    },

    /** Returns the error of a child that ends within a time, or undefined. @param {number} ms */
    async failureWithin (ms) {
      /** @type {NodeJS.Timeout | undefined} */
      let timer
      await Promise.race([closed, new Promise((resolve) => { timer = setTimeout(resolve, ms) })])
      clearTimeout(timer)
      return failure
    },

    /** Ends the child, with a signal after one second. */
    async end () {
      child.removeAllListeners('message')
      if (child.connected) child.send({ command: 'end' }, () => {})
      const timer = setTimeout(() => child.kill('SIGKILL'), 1_000)
      await closed
      clearTimeout(timer)
    }
  }
}

/** @typedef {ReturnType<typeof startChild>} ChildChannel */

module.exports = { startChild, ChildFailure }
