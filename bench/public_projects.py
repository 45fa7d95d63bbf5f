"""Public PyTorch projects by pinned commit: how each is started and which fake data it gets."""

from __future__ import annotations

from dataclasses import dataclass

EXAMPLES = ("pytorch/examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8")
PYGAT = ("Diego999/pyGAT", "3664f2dc90cbf971564c0bf186dc794f12446d0c")
GAN = ("eriklindernoren/PyTorch-GAN", "36d3c77e5ff20ebe0aeefd322326a134a279b93e")
NANO = ("karpathy/nanoGPT", "3adf61e154c3fe3fca428ad6bc3818b27a3b8291")
NLP = ("graykode/nlp-tutorial", "d05e31ec81d56d70c1db89b99ab07e948f7ebc11")
YUNJEY = ("yunjey/pytorch-tutorial", "0500d3df5a2a8080ccfccbc00aca0eacc21818db")
NANO_SMALL = (
    "--dataset=fake --n_layer=2 --n_head=2 --n_embd=64 --block_size=64 --batch_size=4 --eval_iters=1 "
    "--gradient_accumulation_steps=2"
)


@dataclass(frozen=True, slots=True)
class Project:
    """One entry of one repository. ``command`` and the lines of ``data`` are split as a shell would.

    ``ranks`` is how many processes a launcher starts;
    ``folder`` is where it is started and ``part`` is the part of the repository that is copied; ``data`` lines are
    makers of fake_data.py with their arguments, run in ``folder``; ``images`` is how many images the stand-in data
    sets hold; ``importable`` is the folder that ``pip install -e`` would put on the path.
    """

    name: str
    source: tuple[str, str]
    command: str
    folder: str = "."
    data: tuple[str, ...] = ()
    packages: tuple[str, ...] = ("numpy",)
    gpus: int = 1
    ranks: int = 1
    steps: int = 3
    images: int = 128
    part: str = "."
    stand_ins: tuple[str, ...] = ()
    importable: str | None = None
    note: str = ""


def example(name: str, arguments: str = "", script: str = "main.py", **more: object) -> Project:
    """An entry of pytorch/examples."""
    folder = name.partition(" ")[0]
    more.setdefault("stand_ins", ("torchvision",))
    return Project(f"examples/{name}", EXAMPLES, f"{script} {arguments}", folder, **more)  # type: ignore[arg-type]


PROJECTS = (
    example("mnist", "--epochs 1 --batch-size 16"),
    example("mnist_rnn", "--accel --epochs 1 --batch-size 16"),
    example("mnist_forward_forward", "--epochs 2 --train_size 64 --test_size 32"),
    example("mnist_hogwild", "--cuda --epochs 1", note="two processes train one model in CUDA memory"),
    example("vae", "--epochs 1 --batch-size 32"),
    example("siamese_network", "--epochs 1 --batch-size 16"),
    example(
        "word_language_model LSTM",
        "--accel --data fake --epochs 1 --nhid 32 --emsize 32 --batch_size 8 --use-optimizer",
        data=("corpus fake",),
        stand_ins=(),
    ),
    example(
        "word_language_model Transformer",
        "--accel --data fake --epochs 1 --nhid 32 --emsize 32 --batch_size 8 --model Transformer",
        data=("corpus fake 200",),
        stand_ins=(),
        note="moves the parameters by hand, no optimizer",
    ),
    example("dcgan", "--accel --dataset fake --batchSize 8 --workers 1 --niter 1 --ngf 16 --ndf 16 --manualSeed 1"),
    example(
        "dcgan DataParallel",
        "--accel --dataset fake --batchSize 8 --workers 1 --niter 1 --ngf 16 --ndf 16 --manualSeed 1 --ngpu 2",
        gpus=2,
    ),
    example(
        "super_resolution",
        "--accel --upscale_factor 3 --batchSize 4 --testBatchSize 4 --nEpochs 1 --threads 1",
        data=("pictures dataset/BSDS300/images/train 8 256", "pictures dataset/BSDS300/images/test 4 256"),
        packages=("pillow", "six", "numpy"),
    ),
    example(
        "time_sequence_prediction",
        "--steps 1",
        "train.py",
        data=("sine traindata.pt",),
        packages=("matplotlib", "numpy"),
        stand_ins=(),
        note="has no device code: trains on the CPU",
    ),
    example("regression", stand_ins=(), note="has no device code: trains on the CPU"),
    example(
        "reinforcement_learning",
        "",
        "actor_critic.py",
        packages=("gymnasium", "numpy"),
        stand_ins=(),
        note="has no device code: trains on the CPU",
    ),
    example("gat", "--epochs 2", data=("cora cora",), packages=("requests", "numpy"), stand_ins=()),
    example("gcn", "--epochs 2", data=("cora_archive",), stand_ins=("requests",), note="sparse tensors"),
    example(
        "fast_neural_style",
        "train --accel --epochs 1 --batch-size 2 --dataset data --style-image data/a/000.jpg "
        "--save-model-dir out --image-size 64 --log-interval 1",
        "neural_style/neural_style.py",
        data=("pictures data/a 6 96",),
        packages=("pillow", "numpy"),
    ),
    example(
        "imagenet",
        "--dummy -a resnet18 -b 4 -j 1 --epochs 1 -p 1",
        images=12,
        gpus=2,
        note="nn.DataParallel over all GPUs",
    ),
    example(
        "distributed/ddp-tutorial-series",
        "1 1",
        "single_gpu.py",
        stand_ins=(),
        note="device 0 is written down",
    ),
    example("distributed/ddp-tutorial-series spawn", "1 1", "multigpu.py", gpus=2, stand_ins=()),
    example(
        "distributed/ddp-tutorial-series torchrun",
        "1 1",
        "multigpu_torchrun.py",
        gpus=2,
        ranks=2,
        stand_ins=(),
    ),
    example("distributed/ddp", "", "example.py", gpus=2, ranks=2, stand_ins=()),
    Project(
        "minGPT adder",
        ("karpathy/minGPT", "37baab71b9abea1b76ab957409a1cc2fbfba8a26"),
        "projects/adder/adder.py --trainer.max_iters=3 --data.ndigit=1 --trainer.num_workers=1",
        importable=".",
    ),
    Project(
        "nanoGPT",
        NANO,
        f"train.py {NANO_SMALL}",
        data=("characters data/fake",),
        note="device cuda and torch.compile are its defaults",
    ),
    Project(
        "nanoGPT DDP",
        NANO,
        f"train.py {NANO_SMALL} --compile=False",
        data=("characters data/fake",),
        gpus=2,
        ranks=2,
    ),
    Project(
        "makemore",
        ("karpathy/makemore", "988aa59e4d8fefa526d06f3b453ad116258398d4"),
        "makemore.py --device cuda --max-steps 3 -n 1",
        packages=("numpy", "tensorboard"),
    ),
    Project(
        "ng-video-lecture",
        ("karpathy/ng-video-lecture", "52201428ed7b46804849dea0b3ccf0de9df1a5c3"),
        "bigram.py",
    ),
    Project(
        "nlp-tutorial Transformer",
        NLP,
        "Transformer.py",
        "5-1.Transformer",
        packages=("numpy", "matplotlib"),
        note="has no device code: trains on the CPU",
    ),
    Project("nlp-tutorial BERT", NLP, "BERT.py", "5-2.BERT", note="has no device code: trains on the CPU"),
    Project(
        "nlp-tutorial Bi-LSTM attention",
        NLP,
        "'Bi-LSTM(Attention).py'",
        "4-3.Bi-LSTM(Attention)",
        packages=("numpy", "matplotlib"),
        note="has no device code: trains on the CPU",
    ),
    Project(
        "pytorch-examples",
        ("jcjohnson/pytorch-examples", "0003fcdc606a79951e53bf8f46f8574fa4739f23"),
        "nn/two_layer_net_optim.py",
        note="the device is written down: trains on the CPU",
    ),
    Project(
        "attention-is-all-you-need",
        ("jadore801120/attention-is-all-you-need-pytorch", "132907dd272e2cc92e3c10e6c4e783a87ff8893d"),
        "train.py -data_pkl fake.pkl -embs_share_weight -proj_share_weight -label_smoothing -output_dir out "
        "-b 16 -epoch 1 -d_model 64 -d_inner_hid 128 -n_layers 2 -n_head 4 -d_k 16 -d_v 16 -seed 1",
        data=("translation fake.pkl",),
        packages=("numpy", "dill", "tqdm"),
        stand_ins=("torchtext",),
        note="device cuda is its default",
    ),
    Project(
        "pytorch-cifar",
        ("kuangliu/pytorch-cifar", "49b7aa97b0c12fe0d4054e670403a16b6b834ddd"),
        "main.py",
        images=16,
        steps=1,
        stand_ins=("torchvision",),
        note="nn.DataParallel when there is a GPU",
    ),
    Project(
        "BERT-pytorch",
        ("codertimo/BERT-pytorch", "d10dc4f9d5a6f2ca74380f62039526eb7277c671"),
        "bert.py -c fake.txt -v fake.txt.vocab -o out.model -hs 32 -l 2 -a 2 -b 8 -w 1 -e 1",
        data=("bert_corpus fake.txt", "launcher bert.py bert_pytorch.__main__ train"),
        packages=("numpy", "tqdm"),
    ),
    Project("pyGAT", PYGAT, "train.py --epochs 3", data=("cora data/cora",), packages=("numpy", "scipy")),
    Project(
        "pyGAT sparse",
        PYGAT,
        "train.py --epochs 3 --sparse",
        data=("cora data/cora",),
        packages=("numpy", "scipy"),
    ),
    Project(
        "pygcn",
        ("tkipf/pygcn", "1600b5b748b3976413d1e307540ccc62605b4d6d"),
        "train.py --epochs 3",
        "pygcn",
        data=("cora ../data/cora",),
        importable="..",
        packages=("numpy", "scipy"),
        note="sparse tensors",
    ),
    Project(
        "Pytorch-UNet",
        ("milesial/Pytorch-UNet", "21d7850f2af30a9695bbeea75f3136aa538cfc4a"),
        "train.py --epochs 1 --batch-size 2 --scale 0.5 --amp --validation 25",
        data=("pictures data/imgs", "masks data/masks"),
        packages=("numpy", "pillow", "tqdm"),
        steps=2,
        stand_ins=("torchvision", "wandb"),
        note="channels_last, autocast, GradScaler",
    ),
    Project(
        "pytorch-tutorial language_model",
        YUNJEY,
        "main.py",
        "tutorials/02-intermediate/language_model",
        data=("text data/train.txt 1000",),
    ),
    Project(
        "pytorch-tutorial GAN",
        YUNJEY,
        "main.py",
        "tutorials/03-advanced/generative_adversarial_network",
        stand_ins=("torchvision",),
        images=400,
    ),
    Project(
        "pytorch-tutorial bidirectional RNN",
        YUNJEY,
        "main.py",
        "tutorials/02-intermediate/bidirectional_recurrent_neural_network",
        stand_ins=("torchvision",),
        images=400,
    ),
    Project(
        "PyTorch-GAN wgan_gp",
        GAN,
        "wgan_gp.py --n_epochs 1 --batch_size 16",
        "implementations/wgan_gp",
        stand_ins=("torchvision",),
        note="torch.cuda.FloatTensor(…); double backward",
    ),
    Project(
        "PyTorch-GAN infogan",
        GAN,
        "infogan.py --n_epochs 1 --batch_size 16",
        "implementations/infogan",
        stand_ins=("torchvision",),
        note="torch.cuda.LongTensor(…)",
    ),
    Project(
        "TCN copy_memory",
        ("locuslab/TCN", "2f8c2b817050206397458dfd1f5a25ce8a32fe65"),
        "copymem_test.py --blank_len 40 --epochs 1 --levels 4",
        "TCN/copy_memory",
        note="CUDA is its default",
    ),
    Project(
        "SupContrast",
        ("HobbitLong/SupContrast", "66a8fe53880d6a1084b2e4e0db0a019024d6d41a"),
        "main_supcon.py --batch_size 8 --num_workers 1 --epochs 1 --model resnet18",
        images=32,
        stand_ins=("torchvision", "tensorboard_logger"),
    ),
    Project(
        "SimCLR",
        ("sthalles/SimCLR", "1848fc934ad844ae630e6c452300433fe99acfd9"),
        "run.py -dataset-name cifar10 -b 16 -j 1 --epochs 1 --fp16-precision --log-every-n-steps 1",
        images=64,
        packages=("numpy", "tqdm", "tensorboard", "pyyaml"),
        stand_ins=("torchvision",),
    ),
    Project(
        "awd-lstm-lm",
        ("salesforce/awd-lstm-lm", "1d466ec5875675ca6b6f0caacbb741240a29da9e"),
        "main.py --data fake/ --emsize 32 --nhid 48 --batch_size 8 --epochs 1 --save model.pt",
        data=("corpus fake",),
        note="CUDA is its default; rewrites LSTM weights",
    ),
    Project(
        "PyTorchZeroToAll",
        ("hunkim/PyTorchZeroToAll", "e5a260fac0b4ff1e2ec434fc6f0d962ac97fc289"),
        "14_2_seq2seq_att.py",
        note="loss.data[0] fails on every torch since 0.5",
    ),
    Project(
        "pointnet.pytorch",
        ("fxia22/pointnet.pytorch", "bafbf401e0af19be3262e448c59313fd2be0e421"),
        "utils/train_classification.py --dataset fake --batchSize 4 --nepoch 1 --workers 1 --num_points 200",
        data=("shapenet fake",),
        importable=".",
        packages=("numpy", "tqdm", "plyfile"),
        steps=2,
        note="hard-coded .cuda()",
    ),
    Project(
        "transformer-xl",
        ("kimiyoung/transformer-xl", "44781ed21dbaec88b280f74d9ae2877f52b492a5"),
        "train.py --cuda --data fake --dataset enwik8 --n_layer 2 --d_model 32 --n_head 2 --d_head 16 "
        "--d_inner 64 --tgt_len 16 --mem_len 16 --batch_size 4 --max_step 3 --eval-interval 2",
        "pytorch",
        data=("enwik8 fake",),
    ),
    Project(
        "vit-pytorch",
        ("lucidrains/vit-pytorch", "69d24fe9e3024c0d4b02761123b8583a24ebed1e"),
        "train_vit_decorr.py",
        images=64,
        packages=("numpy", "einops", "accelerate"),
        stand_ins=("torchvision", "wandb"),
        steps=2,
        note="accelerate places model and batches",
    ),
    Project(
        "RL-Adventure notebook",
        ("higgsfield/RL-Adventure", "0f82b6922e8a1a8515fc4c84c28702e7caa226f1"),
        "1.dqn.ipynb",
        packages=("numpy", "gymnasium", "matplotlib", "ipython"),
        stand_ins=("gym",),
        note="loss.data[0] fails on every torch since 0.5",
    ),
    Project(
        "deep-learning-v2 notebook",
        ("udacity/deep-learning-v2-pytorch", "c9404fc86181fc3f0906b368697268257f348535"),
        "Character_Level_RNN_Solution.ipynb",
        "recurrent-neural-networks/char-rnn",
        part="recurrent-neural-networks/char-rnn",
        steps=2,
    ),
    Project(
        "ssd.pytorch",
        ("amdegroot/ssd.pytorch", "5b0b77faa955c1917b0c710d770739ba8fbff9b7"),
        "train.py --batch_size 2 --num_workers 0",
        data=("pascal_voc",),
        steps=1,
        packages=("numpy", "opencv-python-headless"),
        stand_ins=("torchvision",),
        note="default tensors are CUDA tensors; its issue 578: the loader's generator is a CPU generator",
    ),
)
