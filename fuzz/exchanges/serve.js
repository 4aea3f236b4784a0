'use strict'

// What the servers do with each kind of request.

/** @typedef {import('./world').World} World */

/** @param {World} world @param {string} url @returns {import('./judge').Truth | undefined} */
function truthOf (world, url) {
  const parts = /^\/?[a-z-]+[/.](\d+)/.exec(url)
  return parts === null ? undefined : world.judge.truthOf(parts[1])
}

/** @param {World} world @param {any} request @param {any} response */
function noteServed (world, request, response) {
  /** @type {import('./judge').Side} */
  const side = { outcome: 'cut' }
  truthOf(world, request.url)?.served.push(side)
  const { socket } = request
  const isHttp1 = request.httpVersionMajor === 1
  // Where the connection was closed before, Node says so all the same.
  response.on('finish', () => { side.outcome = isHttp1 && socket.destroyed ? 'free' : 'whole' })
  response.on('error', () => {})
  request.on('error', () => {})
  return side
}

/** @param {World} world @param {any} servers */
function serve (world, { server, secure, h2, rude }) {
  const { below, sometime, instant } = world

  /** What a path asks for. @type {Record<string, (request: any, response: any) => void>} */
  const handlers = {
    'cut-by-server' (request, response) {
      if (below(2) === 0) response.writeHead(200)
      if (below(2) === 0) response.write('half')
      sometime(() => (below(2) === 0 ? response : request.socket ?? response).destroy())
    },
    silent () {},
    slow: (request, response) => { instant().then(() => response.end('late')) },
    half (request, response) { response.write('half') },
    big: (request, response) => { response.end(Buffer.alloc(300_000)) },
    'server-timeout': (request, response) => {
      if (below(2) === 0) response.write('half')
      request.socket.setTimeout(1 + below(8))
      request.socket.once('timeout', () => request.socket.destroy())
    },
    early (request, response) {
      if (below(2) === 0) response.writeContinue()
      if (below(2) === 0) response.writeEarlyHints({ link: '</a.css>; rel=preload' })
      if (below(2) === 0) response.writeProcessing()
      sometime(() => response.end('ok'))
    },
    nothing (request, response) {
      response.writeHead([204, 304, 205][below(3)])
      response.end()
    },
    failing (request, response) {
      response.statusCode = 500 + below(4)
      response.end('no')
    },
    unheard (request, response) {
      response.removeAllListeners('finish') // not even Node's own hears that it is over
      truthOf(world, request.url)?.served.forEach((side) => { side.outcome = 'free' })
      response.end('ok')
      response.on('close', () => {})
      setTimeout(() => request.socket.destroy(), 5)
    },
    refused (request, response) {
      response.statusCode = 413
      response.end('too much')
      if (below(2) === 0) sometime(() => request.socket.destroy())
    },
    upload (request, response) {
      request.resume().on('end', () => response.end('ok'))
    },
    'closed-by-all' (request, response) {
      response.write('half')
    }
  }

  /** @param {any} request @param {any} response */
  function answer (request, response) {
    noteServed(world, request, response)
    const [, how] = /^\/?[a-z-]+\/\d+\/?([a-z-]*)/.exec(request.url) ?? ['', '']
    const handler = handlers[how]
    if (handler === undefined) response.end('ok')
    else handler(request, response)
  }

  for (const one of [server, secure, h2]) one.on('request', answer)
  for (const one of [server, secure]) {
    one.on('checkContinue', (/** @type {any} */ request, /** @type {any} */ response) => {
      noteServed(world, request, response)
      if (below(2) === 0) {
        response.writeContinue()
        request.resume().on('end', () => response.end('ok'))
      } else {
        response.statusCode = 417
        response.end()
      }
    })
    one.on('checkExpectation', answer)
    for (const event of ['upgrade', 'connect']) {
      one.on(event, (/** @type {any} */ request, /** @type {any} */ socket) => hand(request, socket, event))
    }
    one.on('clientError', (/** @type {any} */ error, /** @type {any} */ socket) => {
      if (below(2) === 0 && socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')
      else socket.destroy(error)
    })
  }
  server.on('tlsClientError', () => {})
  h2.on('sessionError', () => {})
  h2.on('timeout', () => {})

  /** Serves another protocol on a connection. @param {any} request @param {any} socket @param {string} how */
  function hand (request, socket, how) {
    truthOf(world, request.url)?.served.push({ outcome: 'upgraded' })
    socket.on('error', () => {})
    if (below(6) === 0) return socket.destroy()
    if (below(6) === 0) return sometime(() => socket.destroy())
    socket.write(how === 'connect'
      ? 'HTTP/1.1 200 Connection Established\r\n\r\n'
      : 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n')
    socket.on('data', (/** @type {Buffer} */ data) => socket.write(data))
    socket.on('end', () => socket.end())
    if (below(2) === 0) sometime(() => socket.destroy())
  }

  rude.on('connection', (/** @type {any} */ socket) => {
    socket.on('data', (/** @type {Buffer} */ data) => {
      const text = [
        'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n',
        'garbage\r\n\r\n',
        'HTTP/1.1 200',
        '',
        'HTTP/1.1 100 Continue\r\n\r\n',
        'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx',
        'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'
      ][below(10)]
      socket.write(text)
      if (below(2) === 0) sometime(() => socket.end())
      else sometime(() => socket.destroy())
    })
  })
}

module.exports = { serve, truthOf }
