'use strict'

// A single connection whose bytes pass through transforms on their way to Node's HTTP parser. Normally Node's
// parser reads from the handle in C++ and bypasses the socket. Here that is turned off. The bytes arrive as
// 'data' at the listener that Node keeps for sockets without a handle, and a wrapper replaces that listener.
// Nothing is added to the parser, which serves other connections later, and nothing visible to the socket.
//
// The transforms are the program's: they run in the connection's context, outside the guard.

const { types } = require('node:util')
const guard = require('../core/guard')
const { attempt } = require('../files')
const { hidden, own } = require('../objects')
const { hasName, unwrapListeners, wrapListener } = require('./listener-wrappers')

const { apply, construct, getPrototypeOf } = Reflect
const { then } = Promise.prototype
const ignore = () => {}
const EMPTY = /** @type {Buffer} */ (Buffer.alloc(0))
const { prototype } = Buffer
const { hasOwn } = Object
const typedArray = getPrototypeOf(Uint8Array.prototype)
const [bufferIn, offsetIn, lengthIn] = ['buffer', 'byteOffset', 'byteLength'].map((name) =>
  /** @type {Function} */ (Object.getOwnPropertyDescriptor(typedArray, name)?.get))

/**
 * @typedef {(chunk: Buffer, socket: any) => unknown} Transform
 *
 * @typedef {object} Interceptor
 * @property {Transform} transform
 * @property {string} name of the transform
 * @property {string | undefined} at place of the call to trace.intercept
 *
 * @typedef {object} TransformList shared by all connections of a server
 * @property {readonly Interceptor[]} interceptors in order; replaced, never mutated
 * @property {string | undefined} names
 *
 * @typedef {{ threw: unknown } | { returned: unknown }} Failure of a transform
 * @typedef {(interceptor: Interceptor, failure: Failure) => Error} ReportFailure
 *   prints a warning, and makes the error that the socket is destroyed with
 */

/** Intercepted connections, by socket. */
const connections = /** @type {WeakMap<object, Connection>} */ (new WeakMap())

/** Node's listeners, by their names in all versions. */
const isData = hasName('bound socketOnData')
const isEnd = hasName('bound socketOnEnd')
const isResume = hasName('onSocketResume')

class Connection {
  /** false once this connection must not receive more bytes */
  #open = true
  /** true while the parser or a transform runs: Node aborts if the parser is re-entered */
  #busy = false
  /** work that waits for the parser @type {Array<() => void>} */
  #tasks = []
  /** transforms of the last chunk, which may hold bytes back @type {readonly Interceptor[]} */
  #used = []
  /** true until Node resumes reading */
  #waiting = false
  #socket
  #transforms
  #reportFailure
  /** wrapper of Node's 'data' listener @type {ReturnType<typeof wrapListener>} */
  #dataWrapper
  /** wrapper of Node's 'resume' listener @type {ReturnType<typeof wrapListener>} */
  #resumeWrapper

  /**
   * @param {any} socket
   * @param {TransformList} transforms
   * @param {ReportFailure} reportFailure
   */
  constructor (socket, transforms, reportFailure) {
    this.#socket = socket
    this.#transforms = transforms
    this.#reportFailure = reportFailure
    // Bound functions have no frame of their own in stacks.
    this.#dataWrapper = wrapListener(socket, 'data', isData, this.#data.bind(this))
    if (this.#dataWrapper === undefined) return
    wrapListener(socket, 'end', isEnd, this.#end.bind(this))
    this.#resumeWrapper = wrapListener(socket, 'resume', isResume, (original, self, args) => {
      apply(original, self, args)
      this.#work()
    })
    const { parser } = socket
    // The visible flag keeps the value that it has without a transform; Node may call unconsume again.
    if (own(parser, '_consumed') === true) parser.unconsume()
  }

  /** Whether this is an HTTP/1 connection. */
  get isHttp1 () { return this.#dataWrapper !== undefined }

  /** @returns {readonly Interceptor[]} */
  get interceptors () { return this.#transforms.interceptors }

  get names () { return this.#transforms.names }

  /**
   * Flushes a removed transform.
   * @param {Interceptor} interceptor
   * @param {readonly Interceptor[]} later transforms that came after it
   */
  flushRemoved (interceptor, later) {
    if (!this.#open || (this.#tasks.length === 0 && !this.#used.includes(interceptor))) return
    this.#tasks.push(() => {
      if (!this.#used.includes(interceptor)) return
      this.#used = this.#used.filter((used) => used !== interceptor)
      const { interceptors } = this.#transforms
      this.#deliver(this.#flush([interceptor], later.filter((candidate) => interceptors.includes(candidate))))
    })
    this.#work()
  }

  /** Restores Node's listeners once no transform remains, unless the wrappers still have bytes to pass on. */
  restore () {
    if (this.#tasks.length > 0 || this.#busy) return
    for (const event of ['data', 'end', 'resume']) unwrapListeners(this.#socket, event)
    this.#open = false
    this.#used = []
  }

  /** @param {Function} original @param {unknown} self @param {unknown[]} args */
  #data (original, self, args) {
    const [chunk] = args
    if (!this.#open) return this.#socket.destroyed ? undefined : apply(original, self, args)
    // Anything else comes from a stream that the program has put in the socket's place.
    if (!types.isUint8Array(chunk) || chunk.length === 0) return apply(original, self, args)
    if (this.#busy || this.#tasks.length > 0 || this.#socket._paused === true) {
      const { interceptors } = this.#transforms
      this.#tasks.push(() => this.#pass(chunk, interceptors))
      return this.#work()
    }
    this.#busy = true
    try {
      this.#pass(chunk, this.#transforms.interceptors)
    } finally {
      this.#busy = false
    }
    if (this.#tasks.length > 0) this.#work()
  }

  /** @param {Uint8Array} chunk @param {readonly Interceptor[]} interceptors in effect when it arrived */
  #pass (chunk, interceptors) {
    const socket = this.#socket
    this.#used = interceptors
    let bytes = bufferOf(chunk)
    // Does not call #transform: each frame here would displace one of the program's in its stacks.
    for (let i = 0; i < interceptors.length && bytes.length > 0 && this.#open && !socket.destroyed; i++) {
      bytes = this.#call(interceptors[i], bytes)
    }
    if (bytes.length > 0 && this.#open) this.#deliver(bytes)
  }

  /** @param {Function} original @param {unknown} self @param {unknown[]} args */
  #end (original, self, args) {
    if (!this.#open) return this.#socket.destroyed ? undefined : apply(original, self, args)
    this.#tasks.push(() => {
      this.#deliver(this.#flush(this.#transforms.interceptors), true)
      if (this.#open) apply(original, self, args)
      this.#open = false
    })
    this.#work()
  }

  /**
   * Runs waiting tasks as long as the parser accepts bytes. Exceptions of request handlers propagate as they
   * would without longstack.
   */
  #work () {
    if (this.#busy) return
    this.#busy = true
    try {
      while (this.#open && this.#tasks.length > 0 && this.#socket._paused !== true) this.#tasks.shift()?.()
    } finally {
      this.#busy = false
    }
    if (!this.#open) this.#tasks = []
    else if (this.#tasks.length > 0) this.#wait()
  }

  /**
   * Waits until Node resumes reading. When a program listens to 'data' of a request's socket, Node removes
   * its own 'resume' listener, and with it the wrapper.
   */
  #wait () {
    if (this.#waiting || this.#resumeWrapper?.isListed()) return
    this.#waiting = true
    this.#socket.once('resume', () => {
      this.#waiting = false
      this.#work()
    })
  }

  /**
   * Passes bytes to the parser. If Node's listener is the only one, the socket shows no sign of being read,
   * because without a transform the parser bypasses it.
   * @param {Buffer} bytes
   */
  #parse (bytes) {
    const { _events: events, _readableState: state } = this.#socket
    const original = /** @type {Function} */ (this.#dataWrapper?.original)
    if (typeof events.data !== 'function' || typeof state?.reading !== 'boolean') {
      return apply(original, this.#socket, [bytes])
    }
    const { reading } = state
    state.dataEmitted = false
    state.reading = true
    try {
      apply(original, this.#socket, [bytes])
    } finally {
      if (state.reading) state.reading = reading // if false, the stream has pushed meanwhile and must be read
    }
  }

  /** Whether transforms may be called: none has failed or destroyed the socket. */
  #canCall () { return this.#open && !this.#socket.destroyed }

  /**
   * @param {readonly Interceptor[]} interceptors transforms to apply
   * @param {Buffer} chunk
   * @returns {Buffer} empty if one failed or destroyed the socket
   */
  #transform (interceptors, chunk) {
    let bytes = chunk
    for (let i = 0; i < interceptors.length && bytes.length > 0 && this.#canCall(); i++) {
      bytes = this.#call(interceptors[i], bytes)
    }
    return this.#canCall() ? bytes : EMPTY
  }

  /**
   * Calls each transform with an empty chunk, and passes its buffered bytes through the transforms after it.
   * @param {readonly Interceptor[]} interceptors
   * @param {readonly Interceptor[]} [later] transforms after these, which stay in use
   */
  #flush (interceptors, later = []) {
    let bytes = EMPTY
    for (const interceptor of interceptors) {
      bytes = this.#transform([interceptor], bytes)
      if (!this.#canCall()) return EMPTY
      // A fresh buffer: the program may add properties to it.
      bytes = Buffer.concat([bytes, this.#call(interceptor, Buffer.alloc(0))])
    }
    return this.#transform(later, bytes)
  }

  /** @param {Interceptor} interceptor @param {Buffer} chunk @returns {Buffer} */
  #call (interceptor, chunk) {
    const { transform } = interceptor
    let returned
    try {
      returned = apply(transform, undefined, [chunk, this.#socket])
    } catch (threw) {
      return this.#fail(interceptor, { threw })
    }
    const bytes = bytesOf(returned === undefined ? chunk : returned)
    if (bytes !== undefined) return bytes
    // The failure is reported below; its rejection must not be reported as unhandled as well.
    if (types.isPromise(returned)) guard.run(() => apply(then, returned, [ignore, ignore]))
    return this.#fail(interceptor, { returned })
  }

  /** @param {Interceptor} interceptor @param {Failure} failure */
  #fail (interceptor, failure) {
    const socket = this.#socket
    this.#open = false
    const error = this.#reportFailure(interceptor, failure)
    // Without a listener, the error of a socket that has changed its protocol would be an uncaught exception.
    // If the new protocol starts after the request's body, Node 26 forwards the socket's errors to a stream
    // without listeners.
    const upgrade = hidden(socket, 'UpgradeStream')
    const isHandled = (upgrade ?? socket).listenerCount('error') > 0
    socket.destroy(isHandled ? error : undefined)
    if (upgrade !== undefined && !isHandled) {
      process.nextTick(() => { socket.server?.emit('clientError', error, socket) })
    }
    return EMPTY
  }

  /**
   * Passes bytes to the parser, if it still belongs to this connection.
   * @param {Buffer} bytes
   * @param {boolean} [isLast] true if the transforms hold nothing back any more
   */
  #deliver (bytes, isLast = false) {
    const socket = this.#socket
    if (!this.#open || socket.destroyed || !this.#dataWrapper?.isListed()) {
      this.#open = false
      return
    }
    if (bytes.length === 0) return
    const { readableLength } = socket
    this.#parse(bytes)
    if (this.#dataWrapper.isListed() || socket.destroyed) return
    // Another protocol starts. Buffered bytes come after those that followed the request; its handler may
    // have put these back into the socket.
    const heldBack = isLast ? EMPTY : this.#flush(this.#transforms.interceptors)
    this.#open = false
    if (heldBack.length === 0 || socket.destroyed || socket.readableEnded) return
    const isRefilled = readableLength === 0 && socket.readableLength > 0
    if (isRefilled && !socket._readableState.ended) socket.push(heldBack)
    else socket.unshift(heldBack)
  }
}

// Returns bytes as Buffers, without a copy. A length defined by the program's class or property is ignored,
// although Node's parser would read it.

/** @param {Uint8Array} bytes @returns {Buffer} @throws if they are detached */
function bufferOf (bytes) {
  if (getPrototypeOf(bytes) === prototype && !hasOwn(bytes, 'length')) return /** @type {Buffer} */ (bytes)
  return construct(Uint8Array, [bufferIn, offsetIn, lengthIn].map((get) => apply(get, bytes, [])), Buffer)
}

/** @param {unknown} value @returns {Buffer | undefined} undefined unless it is bytes, not detached */
function bytesOf (value) {
  return types.isUint8Array(value) ? attempt(() => bufferOf(value)) : undefined
}

/**
 * Returns the transforms of a connection, for reports.
 * @param {object} socket
 * @returns {Array<{ name: string, at: string | undefined }>}
 */
const transformsOf = (socket) => (connections.get(socket)?.interceptors ?? [])
  .map(({ name, at }) => ({ name, at }))

module.exports = { Connection, connections, transformsOf }
