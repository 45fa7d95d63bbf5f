"""Public projects that are migrated, by pinned commit: written for the CPU alone, or for an interface long gone."""

from __future__ import annotations

from dataclasses import replace

from public_projects import EXAMPLES, GAN, NANO, NLP, PROJECTS, YUNJEY, Project

DEVNAG = ("devnag/pytorch-generative-adversarial-networks", "26db8c9fec86817d9211d2c0a424b48b14d5a0e0")
HUNKIM = ("hunkim/PyTorchZeroToAll", "e5a260fac0b4ff1e2ec434fc6f0d962ac97fc289")
JOHNSON = ("jcjohnson/pytorch-examples", "0003fcdc606a79951e53bf8f46f8574fa4739f23")
LEARN = ("L1aoXingyu/code-of-learn-deep-learning-with-pytorch", "ea24810dc26265e85e3eec34e1d091d21202d800")
LECTURE = ("karpathy/ng-video-lecture", "52201428ed7b46804849dea0b3ccf0de9df1a5c3")
LOEBER = ("patrickloeber/pytorchTutorial", "69637721ed9fa2ccf81a1093a928a52bbb591439")
MINIMAL = ("seungeunrho/minimalRL", "c8efed8481e3cd40e9739cfde220a55522555b57")
MORVAN = ("MorvanZhou/PyTorch-Tutorial", "dbe154a9e56635e51c6b0c2ccea8ae36cfb585a7")
PRACTICAL = ("spro/practical-pytorch", "c520c52e68e945d88fff563dba1c028b6ec0197b")
BINARY = ("itayhubara/BinaryNet.pytorch", "80f6d4685510314a974889c1ca50a385431bb69f")
TCN = ("locuslab/TCN", "2f8c2b817050206397458dfd1f5a25ce8a32fe65")

PLOTS = ("numpy", "matplotlib")


def scripts(source: tuple[str, str], folder: str, *commands: str, **more: object) -> tuple[Project, ...]:
    """Entries of one folder that are started in the same way, named after the repository and the script."""
    short = source[0].partition("/")[2]
    return tuple(
        Project(f"{short} {command.split()[0].strip(chr(39)).removesuffix('.py')}", source, command, folder, **more)  # type: ignore[arg-type]
        for command in commands
    )


def named(*names: str) -> tuple[Project, ...]:
    """Entries of public_projects.py."""
    return tuple(each for name in names for each in PROJECTS if each.name == name)


def nlp(folder: str, script: str) -> Project:
    return Project(f"nlp-tutorial {script.removesuffix('.py')}", NLP, f"'{script}'", folder, packages=PLOTS)


def gan(model: str, **more: object) -> Project:
    """One model of PyTorch-GAN, whose scripts are started alike."""
    more.setdefault("stand_ins", ("torchvision",))
    command = f"{model}.py --n_epochs 1 --batch_size 16"
    return Project(f"PyTorch-GAN {model}", GAN, command, f"implementations/{model}", **more)  # type: ignore[arg-type]


def example(name: str, folder: str, command: str, **more: object) -> Project:
    return Project(f"examples/{name}", EXAMPLES, command, folder, **more)  # type: ignore[arg-type]


def basics(name: str, **more: object) -> Project:
    return Project(f"pytorch-tutorial {name}", YUNJEY, "main.py", f"tutorials/01-basics/{name}", **more)  # type: ignore[arg-type]


# Written for the CPU: most never name a device.
CPU_ONLY: tuple[Project, ...] = (
    nlp("1-1.NNLM", "NNLM.py"),
    nlp("1-2.Word2Vec", "Word2Vec-Skipgram(Softmax).py"),
    nlp("1-3.FastText", "FastText.ipynb"),
    nlp("2-1.TextCNN", "TextCNN.py"),
    nlp("3-1.TextRNN", "TextRNN.py"),
    nlp("3-2.TextLSTM", "TextLSTM.py"),
    nlp("3-3.Bi-LSTM", "Bi-LSTM.py"),
    nlp("4-1.Seq2Seq", "Seq2Seq.py"),
    nlp("4-2.Seq2Seq(Attention)", "Seq2Seq(Attention).py"),
    nlp("4-3.Bi-LSTM(Attention)", "Bi-LSTM(Attention).py"),
    nlp("5-1.Transformer", "Transformer.py"),
    nlp("5-1.Transformer", "Transformer(Greedy_decoder).py"),
    nlp("5-2.BERT", "BERT.py"),
    *scripts(JOHNSON, "tensor", "two_layer_net_tensor.py"),
    *scripts(JOHNSON, "autograd", "two_layer_net_autograd.py", "two_layer_net_custom_function.py"),
    *scripts(
        JOHNSON, "nn", "two_layer_net_nn.py", "two_layer_net_module.py", "two_layer_net_optim.py", "dynamic_net.py"
    ),
    *scripts(
        MINIMAL,
        ".",
        "REINFORCE.py",
        "actor_critic.py",
        "ppo.py",
        "ppo-lstm.py",
        "ppo-continuous.py",
        "vtrace.py",
        "dqn.py",
        "ddpg.py",
        "sac.py",
        "acer.py",
        stand_ins=("new/gym",),
        packages=("numpy", "gymnasium"),
    ),
    *scripts(
        HUNKIM,
        ".",
        "03_auto_gradient.py",
        "05_linear_regression.py",
        "06_logistic_regression.py",
        "07_diabets_logistic.py",
        "08_2_dataset_loade_logistic.py",
        "09_2_softmax_mnist.py",
        "10_1_cnn_mnist.py",
        "12_2_hello_rnn.py",
        "13_2_rnn_classification.py",
        "13_3_char_rnn.py",
        "14_1_seq2seq.py",
        "14_2_seq2seq_att.py",
        stand_ins=("torchvision",),
        images=256,
    ),
    *scripts(
        LOEBER,
        ".",
        "05_2_gradientdescent_auto.py",
        "06_1_loss_and_optimizer.py",
        "07_linear_regression.py",
        "08_logistic_regression.py",
        "13_feedforward.py",
        packages=("numpy", "matplotlib", "scikit-learn"),
        stand_ins=("torchvision",),
        images=256,
    ),
    *scripts(
        MORVAN,
        "tutorial-contents",
        "301_regression.py",
        "304_save_reload.py",
        "306_optimizer.py",
        "403_RNN_regressor.py",
        "406_GAN.py",
        "503_dropout.py",
        packages=PLOTS,
    ),
    *scripts(DEVNAG, ".", "gan_pytorch.py", packages=PLOTS),
    *scripts(LECTURE, ".", "bigram.py"),
    basics("linear_regression", packages=PLOTS),
    basics("logistic_regression", stand_ins=("torchvision",), images=256),
    example(
        "time_sequence_prediction",
        "time_sequence_prediction",
        "train.py --steps 1",
        data=("sine traindata.pt",),
        packages=PLOTS,
    ),
    example("regression", "regression", "main.py"),
    example("actor_critic", "reinforcement_learning", "actor_critic.py", packages=("gymnasium", "numpy")),
    example("reinforce", "reinforcement_learning", "reinforce.py", packages=("gymnasium", "numpy")),
    Project(
        "nanoGPT on the CPU",
        NANO,
        "train.py --device=cpu --compile=False --dataset=fake --n_layer=2 --n_head=2 "
        "--n_embd=64 --block_size=64 --batch_size=4 --eval_iters=1 --gradient_accumulation_steps=2",
        data=("characters data/fake",),
    ),
    replace(named("makemore")[0], name="makemore on the CPU", command="makemore.py --max-steps 3 -n 1"),
)

# Written for a GPU and a torch that is long gone, or for both.
OLD: tuple[Project, ...] = (
    *scripts(PRACTICAL, "char-rnn-classification", "train.py", part="."),
    replace(
        scripts(PRACTICAL, "char-rnn-generation", "train.py fake.txt --chunk_len 20")[0],
        name="practical-pytorch char-rnn-generation",
        data=("text fake.txt",),
        packages=("unidecode", "tqdm"),
    ),
    replace(scripts(PRACTICAL, "conditional-char-rnn", "train.py")[0], name="practical-pytorch conditional-char-rnn"),
    replace(scripts(PRACTICAL, "reinforce-gridworld", "reinforce-gridworld.py")[0], packages=("numpy", "sconce")),
    *scripts(
        LEARN,
        "chapter7_RL",
        "dqn.py",
        stand_ins=("gym",),
        packages=("numpy", "gymnasium"),
    ),
    *scripts(BINARY, ".", "main_mnist.py --epochs 1 --gpus 0", stand_ins=("torchvision",), images=256),
    gan("gan"),
    gan("acgan"),
    gan("aae"),
    gan("infogan"),
    gan("wgan_gp"),
    Project("TCN adding_problem", TCN, "add_test.py --epochs 1 --levels 2 --nhid 8 --seq_len 50", "TCN/adding_problem"),
    *named(
        "TCN copy_memory",
        "pygcn",
        "pyGAT",
        "awd-lstm-lm",
        "transformer-xl",
        "attention-is-all-you-need",
        "ssd.pytorch",
    ),
)

ALL = (*CPU_ONLY, *OLD)
