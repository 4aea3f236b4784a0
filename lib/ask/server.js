'use strict'

// LONGSTACK_SOCKET: a Unix socket of mode 0600 that accepts queries of commands. Each thread has one, named
// as in protocol.js, in a directory that only this user may enter. The first live process has the given name,
// and a command that connects by that name finds the others beside it. The list in files.js states who
// removes what. A blocked event loop cannot respond, so its thread leaves a note of what it runs beside its
// socket. The option `blocked` triggers the note inside the blocking callback; it stays until that callback
// ends.

const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { isMainThread, threadId } = require('node:worker_threads')
const { observers } = require('../blocked/wanted')
const guard = require('../core/guard')
const { attempt, inside, insidePrivate, stateOfName } = require('../files')
const { closeUnopened } = require('../standard-error')
const { messageOf, warn } = require('../warnings')
const { directoryOf, nameOf, noteOf, parseName } = require('./protocol')
const { markOwn, serve } = require('./session')

// Programs replace them
const { stringify } = JSON
const { now } = Date
const MAX_TRIES = 3 // an exiting process may remove the directory that was just found
const HOST_NAMESPACE = 0xeffffffc // PROC_PID_INIT_INO in include/linux/proc_ns.h

/** @typedef {NodeJS.ErrnoException} SystemError */

class LiveServer {
  #name
  #directory
  /** target of the link to this socket */
  #target
  #namespace = namespace()
  #own = nameOf({ pid: process.pid, threadId, namespace: this.#namespace })
  /** @type {Set<net.Socket>} */
  #sockets = new Set()
  #server = net.createServer((socket) => guard.run(() => this.#receive(socket)))
  #isNoted = false
  #hasMadeDirectory = false

  /** @param {string} name */
  constructor (name) {
    this.option = name
    this.#name = path.resolve(name)
    this.#directory = directoryOf(this.#name)
    this.#target = `${path.basename(this.#directory)}/${this.#own}`
    observers.listeners.add(this.#note)
    guard.run(() => this.#listen())
  }

  #listen () {
    if (process.platform === 'win32') return this.#failed('Windows has no sockets that are files')
    this.#server.on('error', (error) => guard.run(() => this.#failed(reasonOf(error))))
    try {
      process.on('exit', this.#remove)
      if (!this.#open()) return this.#remove() // `error` follows
      if (!isMainThread) return
      this.#link()
      this.#sweep()
    } catch (error) {
      this.#remove()
      this.#failed(messageOf(error))
    }
  }

  /** @param {net.Socket} socket of a command */
  #receive (socket) {
    closeUnopened(socket)
    this.#sockets.add(socket)
    serve(socket)
    socket.on('close', () => { this.#sockets.delete(socket) })
  }

  /** @param {string} sentence */
  #failed (sentence) {
    warn('SOCKET', `cannot listen on ${this.option}: ${sentence}`)
  }

  /** @param {import('../blocked/blocking-callback').BlockedEvent} event */
  #note = ({ ms, stack, stillRunning }) => guard.run(() => {
    if (!stillRunning && !this.#isNoted) return
    const text = stringify({ pid: process.pid, threadId, since: now() - ms, stack })
    // Reads no file state: the blocking callback may be in the middle of reading its own (see files.js).
    // Fails if this thread does not listen.
    attempt(() => inside(this.#directory, (directory) => {
      const file = noteOf(`${directory}/${this.#own}`)
      if (this.#isNoted) fs.unlinkSync(file)
      this.#isNoted = false
      if (!stillRunning) return
      fs.writeFileSync(file, text, { flag: 'wx', mode: 0o600 })
      this.#isNoted = true
    }))
  })

  /**
   * Listens in the directory. The socket has a temporary name until its mode is set. libuv removes the file
   * with that name when the server closes, so the name is never reused.
   * @returns {boolean} false if it cannot listen; the server reports why later
   * @throws {SystemError} if the directory cannot be made or is not private to this user
   */
  #open () {
    for (let tries = 1; ; tries++) {
      try {
        if (stateOfName(this.#directory) === undefined) {
          fs.mkdirSync(this.#directory, 0o700)
          this.#hasMadeDirectory = true
        }
        return insidePrivate(this.#directory, (directory) => {
          const first = `${directory}/${this.#own}.${process.hrtime.bigint()}`
          this.#server.listen({ path: first, exclusive: true }) // synchronous; in a cluster, in this process
          if (!this.#server.listening) return false
          markOwn(this.#server.unref())
          fs.chmodSync(first, 0o600)
          fs.renameSync(first, `${directory}/${this.#own}`)
          unlink(noteOf(`${directory}/${this.#own}`)) // of an earlier process with this pid
          return true
        })
      } catch (error) {
        const { code } = /** @type {SystemError} */ (error)
        if (tries === MAX_TRIES || (code !== 'ENOENT' && code !== 'EEXIST')) throw error
      }
    }
  }

  /**
   * Links the name to this process, unless a live process or another file has it.
   */
  #link () {
    try {
      fs.symlinkSync(this.#target, this.#name)
    } catch (error) {
      const { code, message } = /** @type {SystemError} */ (error)
      const target = targetOf(this.#name)
      if (target === undefined || path.dirname(target) !== path.dirname(this.#target)) {
        return this.#failed(code === 'EEXIST' ? 'a file has that name' : message)
      }
      whenNobodyListens(this.#name, () => {
        if (targetOf(this.#name) !== target) return // another process was faster
        fs.unlinkSync(this.#name)
        fs.symlinkSync(this.#target, this.#name)
      })
    }
  }

  /** Removes sockets that nobody listens on, with their notes, and notes without a socket. */
  #sweep () {
    const names = fs.readdirSync(this.#directory)
    for (const name of names.filter((other) => other !== this.#own)) {
      const file = path.join(this.#directory, name)
      const socket = /^(.*)\.busy$/s.exec(name)?.[1]
      if (socket !== undefined && !names.includes(socket)) {
        insidePrivate(this.#directory, (directory) => unlink(`${directory}/${name}`))
      }
      const state = stateOfName(file)
      if (state?.isSocket() !== true) continue
      whenNobodyListens(file, () => insidePrivate(this.#directory, (directory) => {
        if (stateOfName(`${directory}/${name}`)?.ino === state.ino) unlinkWithNote(`${directory}/${name}`)
      }))
    }
  }

  /**
   * Removes the files of this thread. The main thread also removes those of the other threads: they end with
   * it, and Node runs nothing in a thread that is terminated.
   */
  #remove = () => guard.run(() => {
    if (targetOf(this.#name) === this.#target) unlink(this.#name)
    let isOwn = this.#removeSockets()
    if (!isOwn) {
      this.#server.close() // frees a descriptor, in case none is left
      isOwn = this.#removeSockets() || this.#hasMadeDirectory
    }
    if (isOwn) attempt(() => fs.rmdirSync(this.#directory)) // unless others are there
  })

  /** @returns {boolean} false if the directory cannot be read or is not private to this user */
  #removeSockets () {
    return attempt(() => insidePrivate(this.#directory, (directory) => {
      for (const name of threadId === 0 ? fs.readdirSync(directory) : [this.#own]) {
        const { pid, namespace } = parseName(name) ?? {}
        if (pid !== process.pid || namespace !== this.#namespace) continue
        if (stateOfName(`${directory}/${name}`)?.isSocket()) unlinkWithNote(`${directory}/${name}`)
      }
      return true
    })) ?? false
  }

  /** Stops listening, and leaves nothing behind. */
  close () {
    process.off('exit', this.#remove)
    observers.listeners.delete(this.#note)
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    this.#remove()
  }
}

/** @returns {string | undefined} PID namespace of this process; undefined for that of the host */
function namespace () {
  const inode = Number(/\d+/.exec(targetOf('/proc/self/ns/pid') ?? '')?.[0] ?? HOST_NAMESPACE)
  return inode === HOST_NAMESPACE ? undefined : inode.toString(36)
}

/** Returns why the server cannot listen, without its address. @param {any} error of the server */
const reasonOf = (error) => messageOf(error).replace(` ${error.address}`, '')

/** @param {string} name @returns {string | undefined} target of a link; undefined if it is none */
const targetOf = (name) => attempt(() => fs.readlinkSync(name))

/** @param {string} file */
const unlink = (file) => attempt(() => fs.unlinkSync(file))

/** @param {string} socket */
function unlinkWithNote (socket) {
  unlink(socket)
  unlink(noteOf(socket))
}

/** @param {string} file of a socket @param {() => void} work */
function whenNobodyListens (file, work) {
  const probe = net.connect(file)
  closeUnopened(probe)
  probe.on('connect', () => guard.run(() => probe.destroy())).on('error', (error) => guard.run(() => {
    const { code } = /** @type {SystemError} */ (error)
    if (code === 'ECONNREFUSED' || code === 'ENOENT') attempt(work) // another process may do the same
  })).unref()
}

module.exports = { LiveServer }
