'use strict'

// Only http spans, batched as in production; the exporter counts and drops them.

const { registerInstrumentations } = require('@opentelemetry/instrumentation')
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http')
const { BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base')
const { NodeTracerProvider } = require('@opentelemetry/sdk-trace-node')

const exported = { spans: 0 }
const exporter = {
  export (/** @type {unknown[]} */ spans, /** @type {(result: { code: number }) => void} */ done) {
    exported.spans += spans.length
    done({ code: 0 })
  },
  shutdown: async () => {}
}
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] })
provider.register()
registerInstrumentations({ tracerProvider: provider, instrumentations: [new HttpInstrumentation()] })

module.exports = { provider, exported }
