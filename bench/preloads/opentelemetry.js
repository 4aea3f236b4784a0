'use strict'

// Spans of http alone, made and batched as in production; the exporter counts and forgets them.

const { registerInstrumentations } = require('@opentelemetry/instrumentation')
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http')
const { BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base')
const { NodeTracerProvider } = require('@opentelemetry/sdk-trace-node')

const counted = { spans: 0 }
const nowhere = {
  export (/** @type {unknown[]} */ spans, /** @type {(result: { code: number }) => void} */ done) {
    counted.spans += spans.length
    done({ code: 0 })
  },
  shutdown: async () => {}
}
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(nowhere)] })
provider.register()
registerInstrumentations({ tracerProvider: provider, instrumentations: [new HttpInstrumentation()] })

module.exports = { provider, counted }
