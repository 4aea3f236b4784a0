'use strict'

// Asks the processes that listen on a LONGSTACK_SOCKET. One whose event loop is blocked answers by the note
// that it has left beside the socket, if it left one.

const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { createLineReader } = require('./lines')
const { noteOf, parseName } = require('./socket-names')
const { RefusedError, pidInside, socketFiles } = require('./system')
const { AskedThread, BlockedError, nameOfThread } = require('./thread')
const { formatDuration } = require('../text')

const INTRODUCE_MS = 2_000 // for a thread to answer

/**
 * @typedef {import('./processes').Asked} Asked
 * @typedef {import('./processes').AskedProcess} AskedProcess
 *
 * @typedef {{ pid: number, threadId: number, since: number, stack: string }} Note what lib/ask/server.js
 *   writes; since: ms since the epoch
 * @typedef {{ file: string, error: Error }} Failure a socket on which nobody answers
 */

/**
 * Connects to sockets of LONGSTACK_SOCKET.
 * @param {string[]} paths
 * @param {number} [pid] as this command sees it; undefined: not known
 * @returns {Promise<{ threads: AskedThread[], failures: Failure[] }>} threads: those that answer, the main
 *   one first
 */
async function connectTo (paths, pid) {
  /** @type {Failure[]} */
  const failures = []
  const threads = await Promise.all(paths.map((file) => connectToOne(file, pid).catch((error) => {
    failures.push({ file, error })
  })))
  const own = pid === undefined ? undefined : pidInside(pid)
  const present = threads.flatMap((thread) => thread ?? []).filter((thread) => {
    const isOwn = own === undefined || thread.facts.pid === own
    if (!isOwn) thread.close()
    return isOwn
  })
  return { threads: present.sort((a, b) => a.threadId - b.threadId), failures }
}

/** @param {string} file @param {number | undefined} pid @returns {Promise<AskedThread>} */
function connectToOne (file, pid) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(file, () => {
      const thread = new AskedThread(pid ?? 0, socket)
      socket.setEncoding('utf8').on('data', createLineReader((message) => thread.receive(message)))
      thread.introduce(INTRODUCE_MS).then(() => {
        thread.pid = pid ?? thread.facts.pid
        resolve(thread)
      }, (error) => {
        socket.destroy()
        reject(error)
      })
    })
    socket.on('error', reject)
  })
}

/**
 * Asks the processes that listen on a LONGSTACK_SOCKET.
 * @param {string} file
 * @returns {Promise<Asked>}
 * @throws {RefusedError}
 */
async function askSocket (file) {
  const { threads, failures } = await connectTo(socketFiles(file))
  /** @type {AskedProcess[]} */
  const processes = []
  for (const thread of threads) {
    const { pid } = thread
    const known = processes.find((other) => other.pid === pid)
    if (known === undefined) processes.push({ pid, threads: [thread], busy: undefined, busyMs: 0 })
    else known.threads.push(thread)
  }
  const notes = failures.map(noteOfFailure).filter((note) => note?.threadId === 0)
  for (const note of notes) processes.push(blockedProcess(/** @type {Note} */ (note)))
  const refused = silentThreads(failures)
  if (processes.length === 0) {
    const [{ sentence = silence(file, failures), stack } = {}] = refused
    throw new RefusedError([sentence, stack].filter(Boolean).join('\n'))
  }
  return { processes, refused, close: () => { for (const thread of threads) thread.close() } }
}

/**
 * Tells which sockets do not answer, but for those of processes that have noted what their main thread runs.
 * @param {Failure[]} failures
 * @param {number} [known] the process, as this command sees it
 * @returns {Asked['refused']}
 */
function silentThreads (failures, known) {
  return failures.filter(({ error }) => error instanceof BlockedError).flatMap((failure) => {
    const note = noteOfFailure(failure)
    const pid = known ?? note?.pid ?? pidOf(failure.file)
    if (note?.threadId === 0) return []
    return { pid: pid ?? 0, sentence: blockedSentence(failure.file, pid, note), stack: note?.stack }
  })
}

/** Returns what it runs that does not answer, where it has noted that. @param {Failure} failure */
function noteOfFailure ({ file, error }) {
  return error instanceof BlockedError ? readNote(file) : undefined
}

/** @param {string} socket @returns {Note | undefined} what a process has noted that does not answer */
function readNote (socket) {
  try {
    const { pid, threadId, since, stack } = JSON.parse(fs.readFileSync(noteOf(socket), 'utf8'))
    const isNote = Number.isInteger(pid) && Number.isInteger(threadId) && Number.isFinite(since)
    return isNote && typeof stack === 'string' ? { pid, threadId, since, stack } : undefined
  } catch {
    return undefined
  }
}

/** @param {string} file of a socket @returns {number | undefined} undefined: it has another number here */
function pidOf (file) {
  const { pid, namespace } = parseName(path.basename(file)) ?? {}
  return namespace === undefined ? pid : undefined
}

/** @param {Note} note @returns {AskedProcess} */
function blockedProcess ({ pid, since, stack }) {
  return { pid, threads: [], busy: stack, busyMs: Math.max(0, Date.now() - since) }
}

/**
 * @param {string} file
 * @param {number | undefined} pid
 * @param {Note | undefined} note
 */
function blockedSentence (file, pid, note) {
  if (note !== undefined) {
    const duration = formatDuration(Math.max(0, Date.now() - note.since))
    return `Thread ${note.threadId} of process ${pid} is blocked, for ${duration} at least. It runs`
  }
  const { threadId = 0 } = parseName(path.basename(file)) ?? {}
  const subject = pid === undefined ? 'A process' : nameOfThread(pid, threadId)
  return `${subject} listens on ${file} and does not answer: its event loop is blocked. ` +
    `longstack why ${pid ?? 'PID'} asks by the inspector, also inside of what blocks; with ` +
    'LONGSTACK_BLOCKED the process itself tells what it is.'
}

/** @param {string} file @param {Failure[]} failures @returns {string} a sentence: why nobody answers there */
function silence (file, failures) {
  const codes = failures.map(({ error }) => /** @type {NodeJS.ErrnoException} */ (error).code)
  const isForbidden = codes.includes('EACCES') || codes.includes('EPERM')
  if (isForbidden) return `The socket ${file} belongs to another user.`
  return `No process listens on ${file}: the one that did has ended.`
}

module.exports = { askSocket, blockedProcess, connectTo, noteOfFailure, silentThreads }
