"""Traces: the spans and metrics of runs, exported by OpenTelemetry (OTLP over HTTP).

``spans`` is the subscriber of the event stream that builds spans. ``span_queue`` sends finished spans in a separate thread.
``otlp`` is the only module that imports OpenTelemetry. ``conventions`` defines all names.
"""
