"""Prefix-caching settings of vLLM, SGLang, TensorRT-LLM and Triton: pure. Nothing is rendered yet."""
