'use strict'

// A server that receives OTLP over HTTP and stores it, for details that Jaeger does not expose: paths,
// headers, error responses.

const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const https = require('node:https')
const path = require('node:path')
const zlib = require('node:zlib')
const { root } = require('./run')

const folder = path.join(root, 'test', 'fixtures', 'chains')
const cert = path.join(folder, 'cert.pem')

/**
 * @param {import('ava').ExecutionContext} t test that ends the server
 * @param {object} [options]
 * @param {boolean} [options.tls]
 * @param {() => number} [options.status] status of the next response
 */
async function collector (t, { tls = false, status = () => 200 } = {}) {
  /**
   * @type {Array<{ path: string, headers: import('node:http').IncomingHttpHeaders, spans: any[],
   *   resources: any[] }>}
   */
  const requests = []
  const server = tls
    ? https.createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(path.join(folder, 'key.pem')) })
    : http.createServer()
  server.on('request', async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const { resourceSpans = [] } = JSON.parse(String(request.headers['content-encoding'] === 'gzip' ? zlib.gunzipSync(body) : body))
    const spans = resourceSpans.flatMap((/** @type {any} */ one) =>
      one.scopeSpans.flatMap((/** @type {any} */ scope) => scope.spans)
    )
    requests.push({
      path: request.url,
      headers: request.headers,
      spans,
      resources: resourceSpans.map((/** @type {any} */ { resource }) => resource)
    })
    response.writeHead(status(), { 'content-type': 'application/json' }).end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return { requests, port, cert, url: `${tls ? 'https://localhost' : 'http://127.0.0.1'}:${port}`, spans: () => requests.flatMap(({ spans }) => spans) }
}

module.exports = { collector }
