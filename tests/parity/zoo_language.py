"""Models of HuggingFace's transformers for zoo.py: texts, images, sounds and series."""

from zoo_networks import LABELS, NUMBERS, add_torch

TEXT = dict(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=64, max_position_embeddings=40, num_labels=3)


class LogitsOnly:
    """A HuggingFace classifier that answers a tensor."""

    @staticmethod
    def of(model):
        import torch

        class Wrapped(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, input_ids, attention_mask):
                return self.model(input_ids=input_ids, attention_mask=attention_mask).logits

        return Wrapped()


def add_text(kind, **options):
    def make():
        import transformers

        config = getattr(transformers, kind + "Config")(**options, attn_implementation="eager")
        model = getattr(transformers, kind + "ForSequenceClassification")(config)
        return LogitsOnly.of(model)

    spec = [(50, (12,)), (2, (12,))]
    add_torch(f"transformers/{kind}", "transformers", LABELS, make, spec,
              names=("input_ids", "attention_mask"))


for text in ("Bert", "Roberta", "Electra", "Camembert", "XLMRoberta", "MPNet", "Deberta", "DebertaV2",
             "RoFormer", "Albert"):
    add_text(text, **TEXT, **({"embedding_size": 32} if text in ("Albert", "Electra") else {}))
add_text("DistilBert", vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=64,
         max_position_embeddings=40, num_labels=3)
add_text("GPT2", vocab_size=60, n_embd=32, n_layer=2, n_head=4, n_positions=40, num_labels=3,
         pad_token_id=0)
add_text("Llama", **TEXT, pad_token_id=0, num_key_value_heads=2)

DECODER = dict(TEXT, num_key_value_heads=2, pad_token_id=0)
for text in ("Mistral", "Qwen2", "Gemma"):
    add_text(text, **DECODER, **({"head_dim": 8} if text == "Gemma" else {}))
add_text("XLNet", vocab_size=60, d_model=32, n_layer=2, n_head=4, d_inner=64, num_labels=3)
add_text("BigBird", **TEXT, attention_type="original_full")
add_text("ConvBert", **TEXT, embedding_size=32)
add_text("MobileBert", **TEXT, embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16)
add_text("OPT", **TEXT, ffn_dim=64, word_embed_proj_dim=32, pad_token_id=1)
add_text("ModernBert", **TEXT, pad_token_id=0, global_attn_every_n_layers=2, local_attention=8,
         cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2)


def add_model(kind, suffix, answer, spec, names, task=LABELS, **options):
    """Any other model: answer(model, *inputs) gives the tensor."""

    def make():
        import torch
        import transformers

        config = getattr(transformers, kind + "Config")(**options)
        config._attn_implementation = "eager"
        made = getattr(transformers, kind + suffix)(config)

        class OfOne(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = made

            def forward(self, x):
                return answer(self.model, x)

        class OfTwo(OfOne):
            def forward(self, first, second):
                return answer(self.model, first, second)

        return OfOne() if len(spec) == 1 else OfTwo()

    add_torch(f"transformers/{kind}", "transformers", task, make, spec, names=names)


BLOCKS = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
PIXELS = dict(BLOCKS, image_size=32, patch_size=8, num_labels=5)
IMAGE = [("float", (3, 32, 32))]
for image in ("ViT", "DeiT", "Beit", "Dinov2"):
    add_model(image, "ForImageClassification", lambda m, x: m(pixel_values=x).logits, IMAGE,
              ("pixel_values",), **PIXELS)
add_model("Swin", "ForImageClassification", lambda m, x: m(pixel_values=x).logits, IMAGE,
          ("pixel_values",), image_size=32, embed_dim=16, depths=[1, 1], num_heads=[2, 4],
          window_size=4, patch_size=2, num_labels=5)
add_model("ConvNext", "ForImageClassification", lambda m, x: m(pixel_values=x).logits, IMAGE,
          ("pixel_values",), image_size=32, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1],
          num_labels=5)
add_model("CLIPVision", "ModelWithProjection", lambda m, x: m(pixel_values=x).image_embeds, IMAGE,
          ("pixel_values",), **BLOCKS, image_size=32, patch_size=8, projection_dim=10)
add_model("T5", "EncoderModel",
          lambda m, i, a: m(input_ids=i, attention_mask=a).last_hidden_state.mean(1),
          [(50, (12,)), (2, (12,))], ("input_ids", "attention_mask"), vocab_size=60, d_model=32,
          d_kv=8, d_ff=64, num_layers=2, num_heads=4)
add_model("Perceiver", "ForSequenceClassification",
          lambda m, i, a: m(inputs=i, attention_mask=a).logits, [(50, (12,)), (2, (12,))],
          ("input_ids", "attention_mask"), num_latents=8, d_latents=32, d_model=32, num_blocks=1,
          num_self_attends_per_block=2, num_self_attention_heads=4, num_cross_attention_heads=4,
          vocab_size=60, max_position_embeddings=12, num_labels=3)
add_model("Wav2Vec2", "ForSequenceClassification", lambda m, x: m(input_values=x).logits,
          [("float", (800,))], ("input_values",), **BLOCKS, conv_dim=(16, 16, 16),
          conv_kernel=(10, 3, 3), conv_stride=(5, 2, 2), num_conv_pos_embeddings=16,
          num_conv_pos_embedding_groups=4, classifier_proj_size=16, num_labels=4,
          num_feat_extract_layers=3)
add_model("Whisper", "ForAudioClassification", lambda m, x: m(input_features=x).logits,
          [("float", (16, 40))], ("input_features",), vocab_size=60, d_model=32, encoder_layers=2,
          decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
          decoder_ffn_dim=64, num_mel_bins=16, max_source_positions=20, num_labels=4,
          classifier_proj_size=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
          decoder_start_token_id=1)
add_model("PatchTST", "ForRegression", lambda m, x: m(past_values=x).regression_outputs,
          [("float", (32, 2))], ("past_values",), task=NUMBERS, num_input_channels=2,
          context_length=32, patch_length=8, patch_stride=8, d_model=16, num_hidden_layers=2,
          num_attention_heads=4, ffn_dim=32, num_targets=2, loss="mse")
